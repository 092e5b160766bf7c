#include "src/oracle/next_timestamps.h"

#include <algorithm>

#include "percolator/spi/oracle.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

// Timestamps may be so much ahead for other reasons: the restart of an oracle, more than a million of them in a second.
constexpr uint64_t kFarBehindMicros = 5'000'000;

}  // namespace

absl::StatusOr<uint64_t> NextTimestamps::First(uint64_t next, uint32_t count) {
  if (count == 0 || count > Oracle::kMaxCount) {
    return absl::InvalidArgumentError(
        StrCat("asked for ", count, " timestamps; 1 to ", Oracle::kMaxCount, " is possible"));
  }
  const uint64_t first = std::max(next, Time(next));
  if (first > kLastTimestamp - count) {
    return absl::OutOfRangeError(StrCat("the next timestamp would be ", first, ", and the last there is is ",
                                        kLastTimestamp, ": is this machine's clock right?"));
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
