// SPDX-License-Identifier: Apache-2.0

#include "src/base/clock.h"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace percolator {
namespace {

constexpr int64_t kEpochUnixMicros = int64_t{1'735'689'600} * 1'000'000;  // 2025-01-01 00:00 UTC

class RealClock : public Clock {
 public:
  uint64_t WallMicros() override {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
    return static_cast<uint64_t>(std::max<int64_t>(0, micros - kEpochUnixMicros));
  }
};

}  // namespace

uint64_t Clock::BootMicros() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

Clock* Clock::Real() {
  static RealClock* const clock = new RealClock;
  return clock;
}

}  // namespace percolator
