// SPDX-License-Identifier: Apache-2.0

// The pipeline of notify.cc on PostgreSQL, in the usual design: triggers put changes into queue tables and NOTIFY. Workers
// LISTEN, and take one change per transaction from the queue with FOR UPDATE SKIP LOCKED.
//
// The server is Debian's postgresql-15, started here in a temporary folder on a Unix socket and stopped by its process id.

#ifndef PERCOLATOR_BENCHMARKS_POSTGRES_PIPELINE_H_
#define PERCOLATOR_BENCHMARKS_POSTGRES_PIPELINE_H_

#include <memory>
#include <string>

#include "benchmarks/pipeline.h"

namespace percolator {

struct PostgresOptions {
  std::string dir;    // a temporary folder
  bool sync = false;  // synchronous_commit
  int loaders = 2;    // connections that load
  int workers = 2;    // for each of the two stages
};

// Returns null if this machine has no PostgreSQL, or it does not start; `why` says which.
std::unique_ptr<Pipeline> NewPostgresPipeline(const PostgresOptions& options, ObservedFunction observed,
                                              std::string* why);

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_POSTGRES_PIPELINE_H_
