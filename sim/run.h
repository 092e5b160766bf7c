// SPDX-License-Identifier: Apache-2.0

// One run of the simulator: carries out a plan, watches it and judges it.
//
//   set up   no faults: the workload writes its first data
//   run      under faults: processes use the cluster, others run its observers; a process that dies is replaced after a
//            while
//   heal     no more faults, and no new work
//   drain    all work must end within a bounded time, and all messages must arrive (T14)
//   observe  if the workload has observers: workers run until nothing is left to be observed, within a bounded time;
//            the entries of the quarantine are replayed
//   check    a new process resolves all commits of unknown outcome (T10), reads everything, collects garbage and reads
//            again; in the end no lock may be left
//
// The invariants are watched throughout (sim/invariants.h). Last, sim/history judges the history: by its timestamps,
// and if its values are lists, also without them.

#ifndef PERCOLATOR_SIM_RUN_H_
#define PERCOLATOR_SIM_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "sim/chance.h"
#include "sim/coverage.h"
#include "sim/invariants.h"
#include "sim/plan.h"

namespace percolator::sim {

struct RunOptions {
  size_t trace_lines = 0;           // the number of last lines to keep
  std::vector<FaultId> suppressed;  // faults that do not happen
  bool only_history = false;        // judge only by what clients saw, without watching the servers
};

// The amount of work of a run.
struct RunCounts {
  uint64_t events = 0;
  uint64_t transactions = 0;  // of all kinds, snapshots too
  uint64_t committed = 0;     // with writes
  uint64_t failed = 0;
  uint64_t unknown = 0;    // outcomes that the client did not learn at first
  uint64_t processes = 0;  // including those that replaced dead ones
  uint64_t faults = 0;
  uint64_t runs = 0;         // of observers
  uint64_t write_skews = 0;  // GraphReport::write_skew_pivots
  ClusterMetrics cluster;
  CoveredPairs covered;  // of one run; not added up

  void Add(const RunCounts& other);
};

struct RunResult {
  std::optional<Invariants::Violation> failure;
  uint64_t hash = 0;  // of the trace
  RunCounts counts;
  std::string trace;
  std::vector<FaultId> happened;
};

RunResult RunPlan(const Plan& plan, const RunOptions& options = {});

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_RUN_H_
