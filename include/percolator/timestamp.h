// Timestamps order everything in Percolator: versions of a cell, snapshots, commits, locks.
//
// A Timestamp is handed out by the Oracle (see percolator/oracle.h). It is strictly increasing across
// threads, processes and restarts, and close to wall time: its value is at least the number of microseconds
// since 2025-01-01 00:00 UTC at the moment it was drawn. So a timestamp also tells an age, and "the state as
// of yesterday noon" is a timestamp, without ever comparing the clocks of two machines.
//
// The type is strong on purpose: a timestamp is not a count, a duration or a version number, and the compiler
// should say so.

#ifndef PERCOLATOR_TIMESTAMP_H_
#define PERCOLATOR_TIMESTAMP_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

namespace percolator {

class Timestamp {
 public:
  // Zero: before every timestamp the oracle will ever hand out.
  constexpr Timestamp() = default;
  constexpr explicit Timestamp(uint64_t value) : value_(value) {}

  // Past every timestamp. Only an exclusive upper bound: no cell can carry it.
  static constexpr Timestamp Infinity() { return Timestamp(std::numeric_limits<uint64_t>::max()); }

  constexpr uint64_t value() const { return value_; }

  // The timestamp right after this one; Infinity() stays Infinity().
  constexpr Timestamp Next() const { return *this == Infinity() ? *this : Timestamp(value_ + 1); }

  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;

  std::string ToString() const { return *this == Infinity() ? std::string("inf") : std::to_string(value_); }

 private:
  uint64_t value_ = 0;
};

inline std::ostream& operator<<(std::ostream& os, Timestamp ts) { return os << ts.ToString(); }

// The timestamps t with from <= t < until. The default is all of them.
struct TimestampRange {
  Timestamp from;
  Timestamp until = Timestamp::Infinity();

  static constexpr TimestampRange All() { return {}; }
  static constexpr TimestampRange Exactly(Timestamp ts) { return {ts, ts.Next()}; }
  // Everything a snapshot at `ts` may see: [0, ts], both ends included.
  static constexpr TimestampRange UpTo(Timestamp ts) { return {Timestamp(), ts.Next()}; }
  // [ts, infinity), `ts` included.
  static constexpr TimestampRange From(Timestamp ts) { return {ts, Timestamp::Infinity()}; }

  constexpr bool Contains(Timestamp ts) const { return from <= ts && ts < until; }
  constexpr bool empty() const { return from >= until; }

  friend constexpr bool operator==(const TimestampRange&, const TimestampRange&) = default;
};

}  // namespace percolator

#endif  // PERCOLATOR_TIMESTAMP_H_
