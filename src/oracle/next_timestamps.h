// Which timestamps come next: what the oracles that keep a bound have in common.

#ifndef PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
#define PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/base/clock.h"

namespace percolator {

// The last timestamp there is: times 1000 it still fits into the timestamps of Bigtable. The clock gets there in the year
// 2317.
inline constexpr uint64_t kLastTimestamp = 9'223'372'036'854'775;

// Where `count` timestamps in a row begin: at `next`, or at the time it is if that is later.
// kInvalidArgument: a count that Oracle does not allow. kOutOfRange: the last timestamp is reached.
absl::StatusOr<uint64_t> FirstOfNext(uint64_t next, uint32_t count, Clock* clock);

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_NEXT_TIMESTAMPS_H_
