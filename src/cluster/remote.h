// SPDX-License-Identifier: Apache-2.0

// Opens the parts of a cluster that other processes serve.

#ifndef PERCOLATOR_CLUSTER_REMOTE_H_
#define PERCOLATOR_CLUSTER_REMOTE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "src/cluster/address.h"
#include "src/cluster/embedded.h"

namespace percolator {

// Uses one `percolator serve` for all parts.
absl::StatusOr<Parts> OpenServer(const Address& address, const ClusterOptions& options);

// Returns `error`, the result of the first request to the server at `address`, with the likely cause added if it is a TLS
// error. The texts of gRPC do not mention a missing certificate.
absl::Status WithTlsHint(std::string_view address, const absl::Status& error);

// Uses a store in Bigtable, oracles beside it, and etcd for sessions, claims and hints.
absl::StatusOr<Parts> OpenBigtable(const Address& address, const ClusterOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_REMOTE_H_
