// SPDX-License-Identifier: Apache-2.0

// TimestampRange: which versions of a cell a Store reads, tests or erases.

#ifndef PERCOLATOR_SPI_TIMESTAMP_RANGE_H_
#define PERCOLATOR_SPI_TIMESTAMP_RANGE_H_

#include "percolator/timestamp.h"

namespace percolator {

// The timestamps t with from <= t < until. The default is all of them.
struct TimestampRange {
  Timestamp from;
  Timestamp until = Timestamp::Infinity();

  static constexpr TimestampRange All() { return {}; }
  static constexpr TimestampRange Exactly(Timestamp ts) { return {ts, ts.Next()}; }
  // [0, ts], both ends included: what a snapshot at `ts` may see.
  static constexpr TimestampRange UpTo(Timestamp ts) { return {Timestamp(), ts.Next()}; }
  // [ts, infinity), `ts` included.
  static constexpr TimestampRange From(Timestamp ts) { return {ts, Timestamp::Infinity()}; }

  constexpr bool Contains(Timestamp ts) const { return from <= ts && ts < until; }
  constexpr bool empty() const { return from >= until; }

  friend constexpr bool operator==(const TimestampRange&, const TimestampRange&) = default;
};

}  // namespace percolator

#endif  // PERCOLATOR_SPI_TIMESTAMP_RANGE_H_
