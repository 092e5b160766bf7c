// The parts of a cluster, and how to come by them where it lives in one process. (Where not: remote.h.)

#ifndef PERCOLATOR_CLUSTER_EMBEDDED_H_
#define PERCOLATOR_CLUSTER_EMBEDDED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/options.h"
#include "percolator/oracle.h"
#include "percolator/store.h"

namespace percolator {

struct OwnedParts {
  // In the order in which they depend on each other. The far ones only where `store` and `oracle` are fronts of them.
  std::unique_ptr<Store> far_store;
  std::unique_ptr<Oracle> far_oracle;
  std::unique_ptr<Store> store;
  std::unique_ptr<Oracle> oracle;
  std::unique_ptr<Coordinator> coordinator;
};

// Data and the oracle's file in `dir`.
absl::StatusOr<OwnedParts> OpenEmbedded(const std::string& dir, const ClusterOptions& options);

// Everything in memory.
absl::StatusOr<OwnedParts> OpenInMemory();

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_EMBEDDED_H_
