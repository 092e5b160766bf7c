// SPDX-License-Identifier: Apache-2.0

// A chain of observers whose result is determined by its sources, for tests that kill its processes.
//
//     src/K value ---add---> sums/B total ---publish---> out/B total
//                      \--> sums/hot touched ---gather (weak)---> sums/hot grand
//
// "add" adds the difference between the new value and the value added before to the total of K's bucket B, so an
// addition that is lost, or made twice, is never repaired. Loaders count the changes of K, and "add" counts its
// commits, of which there may not be more (N2, N7).

#ifndef PERCOLATOR_TESTS_STRESS_CHAIN_H_
#define PERCOLATOR_TESTS_STRESS_CHAIN_H_

#include <cstdint>
#include <random>

#include "absl/status/status.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"

namespace percolator {

absl::Status SetUpChain(const Cluster& cluster);
void ObserveChain(Worker* worker);

// Changes one source, or two at once, in different rows; sometimes deletes one.
absl::Status ChangeSources(const Cluster& cluster, std::mt19937_64* random);

struct ChainCounts {
  int64_t changes = 0;
  int64_t runs = 0;  // of "add"
};

// REQUIRES: no notification waits. Expects that the derived cells follow from the sources; adds to the counts.
void CheckChain(const Cluster& cluster, ChainCounts* counts);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STRESS_CHAIN_H_
