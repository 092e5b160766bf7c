// How much the crash tests do, and the environment variables that set it.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
#define PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_

#include <chrono>
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

// So many mutations are acknowledged per cycle, on average: with fewer a run shows nothing. How many come in a given time
// is up to the machine, so a cycle of which too few came before goes on until there are enough.
inline constexpr uint64_t kLeastPerCycle = 10;

// Longer than anything that goes on takes, however slow the machine: only what hangs is given up.
inline constexpr std::chrono::seconds kHangs{120};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_SETTINGS_H_
