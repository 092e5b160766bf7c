// Get: what a snapshot sees of cells (figure 6, Get). Scan uses the same parts on pages of rows.
//
// T7  A cell's value at ts is that of its newest put or delete committed at or before ts. Verify records are passed over.
// T8  No lock with start_ts <= ts is passed by: its transaction might commit at or before ts. It is resolved, or waited
//     for. Lock and record are read in one consistent view of the row; the value, if it is in the family data, may be
//     read later, because it never changes.
// G3  A snapshot below the safe point answers nothing: that is checked after the reading, when nothing can be collected
//     any more without being noticed.

#ifndef PERCOLATOR_TXN_GET_H_
#define PERCOLATOR_TXN_GET_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/txn/environment.h"
#include "src/txn/lock.h"
#include "src/txn/write_record.h"

namespace percolator {

// What a snapshot sees of a cell.
struct Version {
  Timestamp commit_ts;               // of the newest put or delete; zero: there is none
  std::optional<std::string> value;  // absent: there is none, or it was deleted
  Timestamp data_ts;                 // not zero: the value has not been loaded yet, it is in the family data, there
};

// A cell to be read. One that is only wanted is left out rather than waited for, and its long value is not loaded.
struct WantedCell {
  CellName cell;
  bool needed = true;
};

// The versions of the cells at `ts`, in the same order. Absent only where a cell was not needed and is locked.
// REQUIRES: no cell comes twice.
absl::StatusOr<std::vector<std::optional<Version>>> GetCells(Environment& env, Timestamp ts,
                                                             const std::vector<WantedCell>& cells,
                                                             const Deadline& deadline);

// The usual case of it, in the shortest way: one cell, nothing in the way, a short value. Absent: it is another case.
absl::StatusOr<std::optional<Version>> GetPlainCell(Environment& env, Timestamp ts, std::string_view table,
                                                    std::string_view row, std::string_view column);

// Loads the values that are in the family data.
absl::Status LoadValues(Environment& env, Timestamp ts, const std::vector<std::pair<CellName, Version*>>& versions,
                        const Deadline& deadline);

// --- Parts that scan.cc shares.

// What one row's read says of one column.
struct ColumnState {
  std::string column;
  std::optional<MetLock> lock;
  std::optional<WriteRecord> record;
  Timestamp commit_ts;  // the record's
};

// What to read of a column for a snapshot at ts: any lock that may hide something, and the newest record.
void AddSelectors(std::optional<std::string> column, Timestamp ts, std::vector<Selector>* selectors);

// The columns of a row that was read so, in the order of their names.
absl::StatusOr<std::vector<ColumnState>> ParseRow(const std::string& table, Row row);

// The version that the record stands for; a verify record has to be followed with FollowVerified before.
Version VersionOf(ColumnState* state);

// Replaces verify records by what they verified.
absl::Status FollowVerified(Environment& env, Timestamp ts,
                            const std::vector<std::pair<CellName, ColumnState*>>& verified, const Deadline& deadline);

// Resolves the locks, or waits a while for their owners.
absl::Status ResolveOrWait(Environment& env, const std::vector<MetLock>& locks, const Deadline& deadline,
                           Backoff* backoff);

// Reads, trying again while the store can't be reached, and checks G3.
absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        const Deadline& deadline);
// G3: kOutOfRange, if the snapshot at `ts` is older than the safe point is now, or was when something was last read.
absl::Status CheckSnapshot(Environment& env, Timestamp ts);
absl::Status CheckAfterRead(Environment& env, Timestamp ts);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_GET_H_
