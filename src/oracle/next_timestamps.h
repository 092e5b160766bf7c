// Which timestamps come next: what the oracles that keep a bound have in common.

#ifndef PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
#define PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "src/base/clock.h"

namespace percolator {

// The last timestamp there is: times 1000 it still fits into the timestamps of Bigtable. The clock gets there in the year
// 2317.
inline constexpr uint64_t kLastTimestamp = 9'223'372'036'854'775;

// T14: the age of a lock, and of garbage, is told by timestamps, so these must not stand still. While the clock is far behind
// them, because it was set back, they follow a clock that nobody can set, at half its pace: so the clock catches up.
class NextTimestamps {
 public:
  explicit NextTimestamps(Clock* clock) : clock_(clock) {}

  // Where `count` timestamps in a row begin: at `next`, or at the time it is if that is later. REQUIRES: one caller at a time.
  // kInvalidArgument: a count that Oracle does not allow. kOutOfRange: the last timestamp is reached.
  absl::StatusOr<uint64_t> First(uint64_t next, uint32_t count);

 private:
  uint64_t Time(uint64_t next);

  struct Anchor {
    uint64_t next;
    uint64_t boot_micros;
  };
  Clock* const clock_;
  std::optional<Anchor> set_back_;  // the clock is far behind, and was so then
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
