// The parts of a cluster that other processes hold.

#ifndef PERCOLATOR_CLUSTER_REMOTE_H_
#define PERCOLATOR_CLUSTER_REMOTE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "src/cluster/address.h"
#include "src/cluster/embedded.h"

namespace percolator {

// Everything at one `percolator serve`. kUnavailable: nobody answers there.
absl::StatusOr<Parts> OpenServer(const Address& address, const ClusterOptions& options);

// Why the first request to what `address` names has failed. What gRPC says of a connection that the other end closes at once
// lets nobody guess that a certificate is missing: this adds what is likely.
absl::Status CantReach(std::string_view address, const absl::Status& why);

// The store in Bigtable, oracles beside it, and sessions, claims and hints in etcd.
absl::StatusOr<Parts> OpenBigtable(const Address& address, const ClusterOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_REMOTE_H_
