// SPDX-License-Identifier: Apache-2.0

// Figure 8 against a server: the part of figure8 behind --cluster.

#ifndef PERCOLATOR_BENCHMARKS_FIGURE8_REMOTE_H_
#define PERCOLATOR_BENCHMARKS_FIGURE8_REMOTE_H_

#include <string>
#include <vector>

namespace percolator {

struct RemoteSettings {
  std::string cluster;  // percolator://HOST:PORT
  int rows = 10'000;
  int value_bytes = 100;
  int rounds = 9;
  int round_ms = 200;
  std::vector<int> threads;
};

// Contestants take turns against one server:
//
//   raw        ReadRows of one row with one cell, MutateRow of one cell, through Bigtable's API
//   unbatched  snapshots and transactions that send their own requests
//   batched    the same as Cluster::Open makes them: threads share requests
//
// Then counts the requests that a transaction takes.
int RunFigure8Remote(const RemoteSettings& settings);

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_FIGURE8_REMOTE_H_
