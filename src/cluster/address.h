// SPDX-License-Identifier: Apache-2.0

// Parses the addresses of clusters, which percolator/cluster.h defines.

#ifndef PERCOLATOR_CLUSTER_ADDRESS_H_
#define PERCOLATOR_CLUSTER_ADDRESS_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace percolator {

struct Address {
  enum class Kind { kRocks, kMemory, kServer, kBigtable };
  Kind kind = Kind::kMemory;
  // The directory, HOST:PORT, or projects/P/instances/I.
  std::string place;
  // The settings after the question mark: name=value&name=value. Always empty for a directory.
  std::map<std::string, std::string> settings;
};

// Returns InvalidArgument if the address is malformed; the text lists the valid forms.
absl::StatusOr<Address> ParseAddress(std::string_view address);

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_ADDRESS_H_
