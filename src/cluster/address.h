// Addresses of clusters: percolator/cluster.h says what they mean.

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
  // The directory; HOST:PORT; projects/P/instances/I.
  std::string place;
  // What follows the question mark: name=value&name=value. Directories have none.
  std::map<std::string, std::string> settings;
};

// kInvalidArgument: it can't be understood; the text says what addresses look like.
absl::StatusOr<Address> ParseAddress(std::string_view address);

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_ADDRESS_H_
