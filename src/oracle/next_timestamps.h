// SPDX-License-Identifier: Apache-2.0

// Chooses the next timestamps, for the oracles that keep a bound.

#ifndef PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
#define PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "src/base/clock.h"

namespace percolator {

// The last timestamp: multiplied by 1000 it still fits into a timestamp of Bigtable. The clock reaches it in the year 2317.
inline constexpr uint64_t kLastTimestamp = 9'223'372'036'854'775;

// T14: timestamps measure the age of locks and of garbage, so they must not stand still. If the clock was set back and is far
// behind them, they follow a clock that cannot be set, at half its pace, so that the clock catches up.
//
// Used by one thread at a time.
class NextTimestamps {
 public:
  explicit NextTimestamps(Clock* clock) : clock_(clock) {}

  // Returns the first of `count` consecutive timestamps: `next`, or the current time if that is later. Returns
  // InvalidArgument if Oracle does not allow the count, and OutOfRange if the last timestamp is reached.
  absl::StatusOr<uint64_t> First(uint64_t next, uint32_t count);

 private:
  uint64_t Time(uint64_t next);

  struct Anchor {
    uint64_t next;
    uint64_t boot_micros;
  };
  Clock* const clock_;
  std::optional<Anchor> set_back_;  // present while the clock is far behind
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
