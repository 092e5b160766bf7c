// The environment variables that set how much the crash tests do.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
#define PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace percolator {

// The number in environment variable `name`, else `standard`.
inline int CrashCycles(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text == nullptr ? standard : std::stoi(text);
}

// PERCOLATOR_TEST_SEED, else another seed in every run.
inline uint64_t CrashSeed() {
  static const uint64_t kSeed = [] {
    const char* const text = std::getenv("PERCOLATOR_TEST_SEED");
    return text == nullptr ? uint64_t{std::random_device()()} : std::stoull(text);
  }();
  return kSeed;
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
