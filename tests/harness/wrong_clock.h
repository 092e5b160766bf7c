// SPDX-License-Identifier: Apache-2.0

// WrongClock: the real clock plus offsets that a test sets.

#ifndef PERCOLATOR_TESTS_HARNESS_WRONG_CLOCK_H_
#define PERCOLATOR_TESTS_HARNESS_WRONG_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "src/base/clock.h"

namespace percolator {

class WrongClock final : public Clock {
 public:
  uint64_t WallMicros() override { return Clock::Real()->WallMicros() + wall_ahead; }
  uint64_t BootMicros() override { return Clock::Real()->BootMicros() + boot_ahead; }

  std::atomic<uint64_t> wall_ahead{0};
  std::atomic<uint64_t> boot_ahead{0};  // the time that the machine has slept
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_WRONG_CLOCK_H_
