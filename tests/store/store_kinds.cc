// SPDX-License-Identifier: Apache-2.0

#include "tests/store/store_kinds.h"

#include <utility>

namespace percolator {
namespace {

std::vector<StoreKind>& Registry() {
  static auto& kinds = *new std::vector<StoreKind>();
  return kinds;
}

}  // namespace

bool RegisterStore(StoreKind kind) {
  Registry().push_back(std::move(kind));
  return true;
}

const std::vector<StoreKind>& StoresToTest() { return Registry(); }

}  // namespace percolator
