// SPDX-License-Identifier: Apache-2.0

// Checks of requests against the rules and limits of percolator/spi/store.h, the same for every store.
//
// Each returns OK, or InvalidArgument with a text that names what is wrong, its size and the limit.

#ifndef PERCOLATOR_STORE_VALIDATE_H_
#define PERCOLATOR_STORE_VALIDATE_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"

namespace percolator {

absl::Status ValidateTableName(const std::string& name);
// Checks the name and schema of a new table.
absl::Status ValidateTable(const TableInfo& info, const StoreLimits& limits);
absl::Status ValidateRead(const RowRead& read, const StoreLimits& limits);
absl::Status ValidateScan(const ScanRequest& request, const StoreLimits& limits);
absl::Status ValidateMutation(const RowMutation& mutation, const StoreLimits& limits);
absl::Status ValidateJointMutation(const JointMutation& mutation, const StoreLimits& limits);

// Returns OutOfRange if the mutation would lock a cell at or below the safe point (G4).
absl::Status CheckSafePoint(const RowMutation& mutation, Timestamp safe_point);
absl::Status CheckSafePoint(const JointMutation& mutation, Timestamp safe_point);

// Returns the error of a joint mutation for which the oracle gave no timestamp: nothing was applied. It is Unavailable
// if a retry may succeed.
absl::Status NoTimestampDrawn(const absl::Status& oracle);
// Returns the timestamp of a set: `drawn` if it is set at JointMutation::AtCommit().
inline Timestamp TimestampOfSet(const Mutation& set, Timestamp drawn) {
  return set.range.from == JointMutation::AtCommit() ? drawn : set.range.from;
}
// Replaces JointMutation::AtCommit() in the mutation by `drawn`.
void SetDrawnTimestamp(Timestamp drawn, Mutation* mutation);

// Limits the bytes of a row while its cells are gathered: to those that the request allows, and, as several selectors may
// select the same cells, so that a small request could select many bytes, to a limit for many selectors.
class RowBytes {
 public:
  RowBytes(size_t selectors, size_t max_bytes, const StoreLimits& limits)
      : limit_(selectors > limits.unlimited_selectors ? std::min(max_bytes, limits.max_row_read_bytes) : max_bytes) {}

  // Counts a cell that is about to be added. Returns false if there are too many bytes with it.
  bool Add(std::string_view column, size_t value_bytes) {
    bytes_ += column.size() + value_bytes;
    return bytes_ <= limit_;
  }
  // Returns ResourceExhausted if there were too many bytes.
  absl::Status status() const { return bytes_ <= limit_ ? absl::OkStatus() : TooManyBytes(); }

  // The same for all cells that were added since the last call.
  absl::Status Count(const std::vector<Cell>& cells) {
    for (; counted_ < cells.size(); ++counted_) Add(cells[counted_].column, cells[counted_].value.size());
    return status();
  }
  // The bytes that may still be added.
  size_t left() const { return limit_ - std::min(limit_, bytes_); }

 private:
  absl::Status TooManyBytes() const;

  const size_t limit_;
  size_t counted_ = 0;  // cells, by Count
  size_t bytes_ = 0;
};

// Returns ResourceExhausted if one more table beside `tables` would exceed a limit.
absl::Status CheckRoomForTable(const TableInfo& info, const std::vector<TableInfo>& tables, const StoreLimits& limits);
// The NotFound error for a table that does not exist.
absl::Status UnknownTable(const std::string& name);
// The AlreadyExists error for a table that exists.
absl::Status TableExists(const std::string& name);
// The FailedPrecondition error of every call after Close. `store` names the store in the message.
absl::Status StoreClosed(std::string_view store);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_VALIDATE_H_
