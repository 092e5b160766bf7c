// SPDX-License-Identifier: Apache-2.0

// Scan: the rows of a range as a snapshot sees them, page by page, in ascending or descending order of their keys.
//
// A page is the result of one Store::Scan. Locks in its rows are resolved, and those rows read again, before any row of
// the page is returned: a row that cannot be read is never left out. Values in the family data are loaded for a few
// rows at a time.

#ifndef PERCOLATOR_TXN_SCAN_H_
#define PERCOLATOR_TXN_SCAN_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "percolator/options.h"
#include "percolator/transaction.h"
#include "src/txn/environment.h"
#include "src/txn/row_view.h"

namespace percolator {

class SnapshotScan {
 public:
  SnapshotScan(Environment* env, Timestamp ts, std::string table, ScanOptions options);

  // Returns the next row, whose columns all have a value, or nullopt at the end.
  absl::StatusOr<std::optional<ScannedRow>> Next(const Deadline& deadline);

 private:
  struct RowStates {
    std::string key;
    std::vector<ColumnState> columns;
  };

  absl::Status FetchPage(const Deadline& deadline);
  absl::StatusOr<ScanPage> ReadPage(const Deadline& deadline);
  absl::Status ResolveRows(std::vector<RowStates>* rows, const Deadline& deadline);
  absl::Status FinishSomeRows(const Deadline& deadline);

  Environment* const env_;
  const Timestamp ts_;
  const bool keys_only_;
  ScanRequest request_;           // for the next page
  bool at_end_ = false;           // no next page
  std::deque<RowStates> page_;    // read, without locks
  std::deque<ScannedRow> ready_;  // with their values
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_SCAN_H_
