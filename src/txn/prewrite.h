// Prewrite: the first phase (figure 6, Prewrite). Locks every cell that the transaction writes.
//
// All cells of a row in one conditional mutation; all rows in one batch, the primary's first. A row is refused if a cell
// was written since the transaction started, if somebody holds a lock there, or if the transaction was rolled back there.
// Refused rows are looked at: locks in the way are resolved, a prewrite that had been applied before is recognised (T11),
// and anything else is a conflict with its evidence.

#ifndef PERCOLATOR_TXN_PREWRITE_H_
#define PERCOLATOR_TXN_PREWRITE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// OK: all cells are locked; with the commit timestamp, if the store has drawn one since. A conflict (kAborted) or any other
// error: they can't be, and some may be locked.
absl::StatusOr<std::optional<Timestamp>> Prewrite(Environment& env, const Writes& writes, const Deadline& deadline);

// Why MayWrite did not hold for a row.
enum class Obstacle {
  kNone,       // nothing is there any more: try again
  kOwnLock,    // the transaction's own lock: this row was prewritten before
  kOwnRecord,  // its own write record: it was committed before
};
// Looks for the obstacle, and resolves locks in the way if it can. A conflict: one stands that nobody can move.
absl::StatusOr<Obstacle> FindObstacle(Environment& env, const RowWrites& row, Timestamp start_ts);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_PREWRITE_H_
