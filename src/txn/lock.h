// SPDX-License-Identifier: Apache-2.0

// The lock record: marks a cell whose transaction is not decided yet. Family lock, at the start timestamp.
//
//   lock     := version kind flags [primary] session refreshed [depth] [verified] [value]
//   version  := 01                         a larger number: written by a newer Percolator, refused
//   kind     := 01 put | 02 delete | 03 verify
//   flags    := sum of 01: a value follows, inline; 02: this cell is the primary; 04: observed
//   primary  := table row column           each an ordered string; absent if this cell is the primary
//   session, refreshed := fixed64
//   depth    := fixed32                    observed only: of the marks (mark.h)
//   verified := fixed64                    kind verify only: see write_record.h
//   value    := the rest
//
// The lock has all that another client needs to finish the transaction's work on this cell.

#ifndef PERCOLATOR_TXN_LOCK_H_
#define PERCOLATOR_TXN_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"
#include "src/txn/write_record.h"

namespace percolator {

struct Lock {
  WriteKind kind = WriteKind::kPut;  // not kRollback
  // The cell with the verdict on the transaction; absent: this one.
  std::optional<CellName> primary;
  SessionId session = 0;
  // When its owner was last known to be alive, by the oracle's time.
  Timestamp refreshed;
  bool observed = false;
  uint32_t depth = 0;  // observed only
  Timestamp verified;
  std::optional<std::string> value;

  friend bool operator==(const Lock&, const Lock&) = default;
};

// REQUIRES: lock.kind is not kRollback.
std::string EncodeLock(const Lock& lock);
// Returns DataLoss if `bytes` are not a lock, and FailedPrecondition if they are of a newer format.
absl::StatusOr<Lock> DecodeLock(std::string_view bytes);

// Returns the write record that commits the locked cell.
std::string EncodeRecordOf(const Lock& lock, Timestamp start_ts);

// A lock that a reader or another transaction found.
struct FoundLock {
  CellName cell;
  Timestamp start_ts;
  Lock lock;

  const CellName& primary() const { return lock.primary.has_value() ? *lock.primary : cell; }
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_LOCK_H_
