// SPDX-License-Identifier: Apache-2.0

// The amount of work of the crash tests, and the environment variables that set it.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
#define PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace percolator {

// The number in environment variable `name`, or `standard`.
inline int CrashCycles(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text == nullptr ? standard : std::stoi(text);
}

// PERCOLATOR_TEST_SEED, or another seed in every run.
inline uint64_t CrashSeed() {
  static const uint64_t kSeed = [] {
    const char* const text = std::getenv("PERCOLATOR_TEST_SEED");
    return text == nullptr ? uint64_t{std::random_device()()} : std::stoull(text);
  }();
  return kSeed;
}

// The mutations acknowledged per cycle, on average; a run with fewer shows nothing. The machine decides how many come
// in a given time, so if there were too few before, a cycle continues until there are enough.
inline constexpr uint64_t kLeastPerCycle = 10;

// Longer than any step takes, even on a slow machine: only a step that hangs exceeds it.
inline constexpr std::chrono::seconds kHangs{120};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
