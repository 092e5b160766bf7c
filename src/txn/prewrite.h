// SPDX-License-Identifier: Apache-2.0

// Prewrite: the first phase (figure 6, Prewrite). Locks every cell that the transaction writes.
//
// All cells of a row are locked by one conditional mutation; all rows go in one batch, the primary's first. The store
// refuses a row if a cell was written since the transaction started, if another transaction holds a lock in it, or if
// the transaction was rolled back there. Prewrite then reads the refused row. It resolves the locks of others,
// recognises a prewrite that was applied before (T11), and reports anything else as a conflict with its evidence.

#ifndef PERCOLATOR_TXN_PREWRITE_H_
#define PERCOLATOR_TXN_PREWRITE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Locks all cells. Returns the commit timestamp if the store has drawn one since. Returns Aborted for a conflict. After
// any error, some cells may be locked.
absl::StatusOr<std::optional<Timestamp>> Prewrite(Environment& env, const Writes& writes, const Deadline& deadline);

// Why MayWrite does not hold for a row.
enum class Obstacle {
  kNone,       // the obstacle is gone: try again
  kOwnLock,    // the transaction's own lock: this row was prewritten before
  kOwnRecord,  // its own write record: it was committed before
};
// Finds the obstacle, and resolves the locks of other transactions if it can. Returns a conflict if a lock or a record
// remains.
absl::StatusOr<Obstacle> FindObstacle(Environment& env, const RowWrites& row, Timestamp start_ts);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_PREWRITE_H_
