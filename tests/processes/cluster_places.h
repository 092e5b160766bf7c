// SPDX-License-Identifier: Apache-2.0

// The places of a cluster of many processes: at our server, and in Bigtable (Google's emulator, with an oracle and etcd
// beside it). For tests that run on every kind of address.

#ifndef PERCOLATOR_TESTS_PROCESSES_CLUSTER_PLACES_H_
#define PERCOLATOR_TESTS_PROCESSES_CLUSTER_PLACES_H_

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"

namespace percolator {

class ClusterPlace {
 public:
  virtual ~ClusterPlace() = default;

  // The address for Cluster::Open. The processes behind it live as long as the place.
  virtual std::string address() const = 0;
};

struct ClusterPlaceKind {
  const char* name;
  absl::StatusOr<std::unique_ptr<ClusterPlace>> (*make)();  // Unavailable, with the reason, if not on this machine
};

inline void PrintTo(const ClusterPlaceKind& kind, std::ostream* os) { *os << kind.name; }

absl::StatusOr<std::unique_ptr<ClusterPlace>> MakeServerPlace();
absl::StatusOr<std::unique_ptr<ClusterPlace>> MakeBigtablePlace();

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_CLUSTER_PLACES_H_
