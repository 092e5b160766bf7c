// SPDX-License-Identifier: Apache-2.0

// Ownership between the parts of a cluster.

#ifndef PERCOLATOR_CLUSTER_KEEPING_H_
#define PERCOLATOR_CLUSTER_KEEPING_H_

#include <memory>
#include <utility>

namespace percolator {

// Returns `part`, which keeps `used` alive, so that a caller of OpenParts may replace a part that another part uses.
template <typename T, typename Used>
std::shared_ptr<T> Keeping(std::unique_ptr<T> part, std::shared_ptr<Used> used) {
  return std::shared_ptr<T>(part.release(), [used = std::move(used)](T* p) { delete p; });
}

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_KEEPING_H_
