// SPDX-License-Identifier: Apache-2.0

// Waits for other threads. Where the code under test takes a Runtime, prefer virtual_runtime.h.

#ifndef PERCOLATOR_TESTS_HARNESS_EVENTUALLY_H_
#define PERCOLATOR_TESTS_HARNESS_EVENTUALLY_H_

#include <chrono>
#include <functional>
#include <thread>

namespace percolator {

// Waits until the condition is true. Returns false after two minutes, so that a slow machine does not fail a test.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_EVENTUALLY_H_
