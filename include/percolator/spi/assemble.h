// SPDX-License-Identifier: Apache-2.0

// Assembling a cluster from parts of your own: for tests, simulation and unusual deployments.
//
//     PERCOLATOR_ASSIGN_OR_RETURN(Parts parts, OpenParts("memory:"));
//     parts.store = std::make_shared<PrintingStore>(parts.store);  // a ForwardingStore
//     PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Assemble(parts));
//
// percolator/spi/forwarding.h has the ForwardingStore.

#ifndef PERCOLATOR_SPI_ASSEMBLE_H_
#define PERCOLATOR_SPI_ASSEMBLE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/options.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"

namespace percolator {

// The parts of a cluster. The order of the fields is the order in which parts may depend on each
// other.
struct Parts {
  std::shared_ptr<Store> store = nullptr;
  std::shared_ptr<Oracle> oracle = nullptr;
  std::shared_ptr<Coordinator> coordinator = nullptr;
  std::shared_ptr<Runtime> runtime = nullptr;  // null: Runtime::Real()
};

// Returns a pointer that does not own `part`. REQUIRES: `part` outlives Cluster::Close, or the last
// handle if Close is not called. A runtime outlives the last handle in any case.
template <typename T>
std::shared_ptr<T> Borrow(T* part) {
  return std::shared_ptr<T>(std::shared_ptr<void>(), part);
}

// Returns the parts that Cluster::Open(address, options) would use. Errors are the same.
absl::StatusOr<Parts> OpenParts(std::string_view address, const ClusterOptions& options = {});

// Returns a cluster of these parts. Close releases the cluster's references to them. It does not
// call Store::Close, because other clusters may share the store.
absl::StatusOr<Cluster> Assemble(Parts parts, const ClusterOptions& options = {});

}  // namespace percolator

#endif  // PERCOLATOR_SPI_ASSEMBLE_H_
