// A chain of observers whose result can be told from its sources, for tests that kill what runs it.
//
//     src/K value ---add---> sums/B total ---publish---> out/B total
//                      \--> sums/hot touched ---gather (weak)---> sums/hot grand
//
// "add" adds the difference between the new value and the one it has added before to the total of K's bucket B: an addition
// that is lost, or made twice, is never made good. Loaders count the changes of K, "add" counts its commits: there are not
// more of these (N2, N7).

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

// Changes one source, or two of them at once, which are in different rows; now and then deletes one.
absl::Status ChangeSources(const Cluster& cluster, std::mt19937_64* random);

struct ChainCounts {
  int64_t changes = 0;
  int64_t runs = 0;  // of "add"
};

// REQUIRES: no notification waits. Expects that what was derived is what follows from the sources; adds to the counts.
void CheckChain(const Cluster& cluster, ChainCounts* counts);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STRESS_CHAIN_H_
