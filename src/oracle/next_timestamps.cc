#include "src/oracle/next_timestamps.h"

#include <algorithm>

#include "percolator/oracle.h"
#include "src/base/strings.h"

namespace percolator {

absl::StatusOr<uint64_t> FirstOfNext(uint64_t next, uint32_t count, Clock* clock) {
  if (count == 0 || count > Oracle::kMaxCount) {
    return absl::InvalidArgumentError(
        StrCat("asked for ", count, " timestamps; 1 to ", Oracle::kMaxCount, " is possible"));
  }
  const uint64_t first = std::max(next, clock->WallMicros());
  if (first > kLastTimestamp - count) {
    return absl::OutOfRangeError(StrCat("the next timestamp would be ", first, ", and the last there is is ",
                                        kLastTimestamp, ": is this machine's clock right?"));
  }
  return first;
}

}  // namespace percolator
