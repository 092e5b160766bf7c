// The parts of a cluster, and how to come by them where it lives in one process. (Where not: remote.h.)

#ifndef PERCOLATOR_CLUSTER_EMBEDDED_H_
#define PERCOLATOR_CLUSTER_EMBEDDED_H_

#include <string>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/assemble.h"

namespace percolator {

// Data and the oracle's file in `dir`.
absl::StatusOr<Parts> OpenEmbedded(const std::string& dir, const ClusterOptions& options);

// Everything in memory.
absl::StatusOr<Parts> OpenInMemory();

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_EMBEDDED_H_
