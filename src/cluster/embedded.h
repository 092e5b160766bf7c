// SPDX-License-Identifier: Apache-2.0

// Opens the parts of a cluster in this process. remote.h opens those of other processes.

#ifndef PERCOLATOR_CLUSTER_EMBEDDED_H_
#define PERCOLATOR_CLUSTER_EMBEDDED_H_

#include <string>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/assemble.h"

namespace percolator {

// Opens the store and the oracle's file in `dir`.
absl::StatusOr<Parts> OpenEmbedded(const std::string& dir, const ClusterOptions& options);

// Makes a cluster in memory.
absl::StatusOr<Parts> OpenInMemory();

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_EMBEDDED_H_
