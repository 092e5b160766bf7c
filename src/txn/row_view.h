// SPDX-License-Identifier: Apache-2.0

// What a snapshot sees of a row: the parts that get.h and scan.h share. get.h has the rules (T7, T8, G3).

#ifndef PERCOLATOR_TXN_ROW_VIEW_H_
#define PERCOLATOR_TXN_ROW_VIEW_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"
#include "src/txn/lock.h"
#include "src/txn/write_record.h"

namespace percolator {

// What a snapshot sees of a cell.
struct Version {
  Timestamp commit_ts;               // of the newest put or delete, or zero
  std::optional<std::string> value;  // absent if the cell has no value or was deleted
  Timestamp data_ts;                 // if not zero, the value is not loaded yet: it is in the family data, there
};

// What the read of one row shows of one column.
struct ColumnState {
  std::string column;
  std::optional<FoundLock> lock;
  std::optional<WriteRecord> record;
  Timestamp commit_ts;  // the record's
};

// --- The steps of a read, in order.

// Selects, for a snapshot at ts, the parts of a column to read: any lock that may hide a version, and the newest
// record.
void AddSelectors(std::optional<std::string> column, Timestamp ts, std::vector<Selector>* selectors);

// Reads, retries while the store cannot be reached, and checks G3. `make_deadline` is called if the first attempt
// fails.
absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        absl::FunctionRef<Deadline()> make_deadline);
absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        const Deadline& deadline);
// G3: returns OutOfRange if the snapshot at `ts` is older than the safe point now, or at the last read.
absl::Status CheckSnapshot(Environment& env, Timestamp ts);
absl::Status CheckAfterRead(Environment& env, Timestamp ts);

// Returns the columns of a row that was read with these selectors, by name.
absl::StatusOr<std::vector<ColumnState>> ParseRow(const std::string& table, Row row);

// Replaces verify records by the versions that they verified.
absl::Status FollowVerified(Environment& env, Timestamp ts,
                            const std::vector<std::pair<CellName, ColumnState*>>& verified, const Deadline& deadline);

// Returns the version of a record, and moves the value out of it. REQUIRES: not a verify record (see FollowVerified).
Version VersionOf(WriteRecord& record, Timestamp commit_ts);
Version VersionOf(ColumnState* state);

// Loads the values that are in the family data.
absl::Status LoadValues(Environment& env, Timestamp ts, const std::vector<std::pair<CellName, Version*>>& versions,
                        const Deadline& deadline);

// Resolves the locks, or waits with the backoff for their owners.
absl::Status ResolveOrWait(Environment& env, const std::vector<FoundLock>& locks, const Deadline& deadline,
                           Backoff* backoff);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ROW_VIEW_H_
