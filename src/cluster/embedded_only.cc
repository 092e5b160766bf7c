// SPDX-License-Identifier: Apache-2.0

// Replaces remote.cc in a build without servers.

#include "src/base/strings.h"
#include "src/cluster/remote.h"

namespace percolator {
namespace {

absl::Status NotBuilt(std::string_view scheme) {
  return absl::UnimplementedError(
      StrCat(scheme, " is not available in this build (it was built with PERCOLATOR_SERVER=OFF)"));
}

}  // namespace

absl::StatusOr<Parts> OpenServer(const Address& /*address*/, const ClusterOptions& /*options*/) {
  return NotBuilt("percolator://");
}

absl::Status WithTlsHint(std::string_view /*address*/, const absl::Status& error) { return error; }

absl::StatusOr<Parts> OpenBigtable(const Address& /*address*/, const ClusterOptions& /*options*/) {
  return NotBuilt("bigtable:");
}

}  // namespace percolator
