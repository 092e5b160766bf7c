// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/next_timestamps.h"

#include <algorithm>

#include "percolator/spi/oracle.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

// Timestamps may be this far ahead for other reasons: after the restart of an oracle, or at over a million per second.
constexpr uint64_t kFarBehindMicros = 5'000'000;

}  // namespace

absl::StatusOr<uint64_t> NextTimestamps::First(uint64_t next, uint32_t count) {
  if (count == 0 || count > Oracle::kMaxCount) {
    return absl::InvalidArgumentError(
        StrCat("cannot issue ", count, " timestamps: a request is for 1 to ", Oracle::kMaxCount));
  }
  const uint64_t first = std::max(next, Time(next));
  if (first > kLastTimestamp - count) {
    return absl::OutOfRangeError(
        StrCat("timestamp ", first, " exceeds the maximum ", kLastTimestamp, "; check the clock of this machine"));
  }
  return first;
}

uint64_t NextTimestamps::Time(uint64_t next) {
  const uint64_t wall = clock_->WallMicros();
  if (next <= wall || next - wall <= kFarBehindMicros) {
    set_back_.reset();
    return wall;
  }
  const uint64_t boot = clock_->BootMicros();
  if (set_back_.has_value()) {
    const uint64_t time = set_back_->next + (boot - set_back_->boot_micros) / 2;
    if (time >= next) return time;
  }
  set_back_ = Anchor{next, boot};
  return next;
}

}  // namespace percolator
