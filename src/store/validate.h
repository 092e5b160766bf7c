// Checks of requests against the rules and limits of percolator/spi/store.h, the same for every store.
//
// Each returns OK, or kInvalidArgument with a text that names what is wrong, its size and the limit.

#ifndef PERCOLATOR_STORE_VALIDATE_H_
#define PERCOLATOR_STORE_VALIDATE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"

namespace percolator {

absl::Status ValidateTableName(const std::string& name);
// Of a table that is to be made: its name and schema.
absl::Status ValidateTable(const TableInfo& info, const StoreLimits& limits);
absl::Status ValidateRead(const RowRead& read, const StoreLimits& limits);
absl::Status ValidateScan(const ScanRequest& request, const StoreLimits& limits);
absl::Status ValidateMutation(const RowMutation& mutation, const StoreLimits& limits);
absl::Status ValidateJointMutation(const JointMutation& mutation, const StoreLimits& limits);

// The kOutOfRange of a mutation that would lock a cell at or below the safe point (G4).
absl::Status CheckSafePoint(const RowMutation& mutation, Timestamp safe_point);
absl::Status CheckSafePoint(const JointMutation& mutation, Timestamp safe_point);

// What a joint mutation answers when the oracle gives no timestamp: nothing was applied. kUnavailable, if it may give one
// soon.
absl::Status NoTimestampDrawn(const absl::Status& oracle);
// The timestamp of a set: the drawn one in the place of JointMutation::AtCommit().
inline Timestamp TimestampOfSet(const Mutation& set, Timestamp drawn) {
  return set.range.from == JointMutation::AtCommit() ? drawn : set.range.from;
}
// The same, put into the mutation.
void SetDrawnTimestamp(Timestamp drawn, Mutation* mutation);

// The bytes of a row while its cells are gathered: several selectors may select the same cells, so a small request could
// ask for very much.
class RowBytes {
 public:
  RowBytes(size_t selectors, const StoreLimits& limits)
      : limit_(selectors > limits.unlimited_selectors ? limits.max_row_read_bytes : 0) {}

  // Counts the cells that came since the last call. kResourceExhausted: they are too many.
  absl::Status Count(const std::vector<Cell>& cells) { return limit_ == 0 ? absl::OkStatus() : CountMore(cells); }

 private:
  absl::Status CountMore(const std::vector<Cell>& cells);

  const size_t limit_;  // 0: none
  size_t counted_ = 0;  // cells
  size_t bytes_ = 0;
};

// Returns ResourceExhausted if one more table beside `tables` would exceed a limit.
absl::Status CheckRoomForTable(const TableInfo& info, const std::vector<TableInfo>& tables, const StoreLimits& limits);
// The kNotFound of an operation on a table that does not exist.
absl::Status UnknownTable(const std::string& name);
// The kAlreadyExists of creating a table that does.
absl::Status TableExists(const std::string& name);
// The kFailedPrecondition of any call after Close.
absl::Status StoreClosed();

}  // namespace percolator

#endif  // PERCOLATOR_STORE_VALIDATE_H_
