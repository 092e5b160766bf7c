// SPDX-License-Identifier: Apache-2.0

// The protocol between crash_child and the test that kills it.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_CHILD_H_
#define PERCOLATOR_TESTS_STORE_CRASH_CHILD_H_

#include <cstdint>
#include <limits>

namespace percolator {

inline constexpr int kReportFd = 3;
// Instead of a writer's number: the store is open.
inline constexpr uint32_t kOpened = std::numeric_limits<uint32_t>::max();

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_CHILD_H_
