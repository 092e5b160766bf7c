// SPDX-License-Identifier: Apache-2.0

#include "src/base/stable_hash.h"

#include <gtest/gtest.h>

namespace percolator {
namespace {

// The hash must not change with the compiler or the machine, because stored keys depend on it.
TEST(StableHashTest, IsStable) {
  EXPECT_EQ(StableHash(""), 0xfdbdf6ac4fc52e7fU);
  EXPECT_EQ(StableHash("percolator"), 0xf2c6746f73d7c6ccU);
}

}  // namespace
}  // namespace percolator
