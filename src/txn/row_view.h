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
  Timestamp data_ts;                 // not zero: the value has not been loaded yet, it is in the family data, there
};

// What one row's read says of one column.
struct ColumnState {
  std::string column;
  std::optional<FoundLock> lock;
  std::optional<WriteRecord> record;
  Timestamp commit_ts;  // the record's
};

// --- The steps of a read, in their order.

// What to read of a column for a snapshot at ts: any lock that may hide something, and the newest record.
void AddSelectors(std::optional<std::string> column, Timestamp ts, std::vector<Selector>* selectors);

// Reads, trying again while the store can't be reached, and checks G3. `make_deadline` is called if the first try fails.
absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        absl::FunctionRef<Deadline()> make_deadline);
absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        const Deadline& deadline);
// G3: kOutOfRange, if the snapshot at `ts` is older than the safe point is now, or was when something was last read.
absl::Status CheckSnapshot(Environment& env, Timestamp ts);
absl::Status CheckAfterRead(Environment& env, Timestamp ts);

// The columns of a row that was read so, in the order of their names.
absl::StatusOr<std::vector<ColumnState>> ParseRow(const std::string& table, Row row);

// Replaces verify records by what they verified.
absl::Status FollowVerified(Environment& env, Timestamp ts,
                            const std::vector<std::pair<CellName, ColumnState*>>& verified, const Deadline& deadline);

// The version that a record stands for, whose value it takes. A verify record has to be followed with FollowVerified before.
Version VersionOf(WriteRecord& record, Timestamp commit_ts);
Version VersionOf(ColumnState* state);

// Loads the values that are in the family data.
absl::Status LoadValues(Environment& env, Timestamp ts, const std::vector<std::pair<CellName, Version*>>& versions,
                        const Deadline& deadline);

// Resolves the locks, or waits for their owners by the backoff.
absl::Status ResolveOrWait(Environment& env, const std::vector<FoundLock>& locks, const Deadline& deadline,
                           Backoff* backoff);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ROW_VIEW_H_
