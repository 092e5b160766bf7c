// The parts of a cluster that lives in one process.

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

struct EmbeddedParts {
  // In the order in which they depend on each other.
  std::unique_ptr<Store> store;
  std::unique_ptr<Oracle> oracle;
  std::unique_ptr<Coordinator> coordinator;
};

// Data and the oracle's file in `dir`.
absl::StatusOr<EmbeddedParts> OpenEmbedded(const std::string& dir, const ClusterOptions& options);

// Everything in memory.
absl::StatusOr<EmbeddedParts> OpenInMemory();

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_EMBEDDED_H_
