// SPDX-License-Identifier: Apache-2.0

// Iterates over the versions that one selector selects in a range of rows, in key order or, row by row, in reverse.
//
// A scan has one cursor per selector, all on one snapshot, and merges them row by row. The cursor steps over versions
// and columns that are not selected, by Next while they are few and by Seek when they are many.
//
// A reverse cursor seeks the last version before its row, which gives the next row, then seeks the start of that row
// and reads it forwards. So a row costs it two seeks.

#ifndef PERCOLATOR_STORE_ROCKS_SCAN_CURSOR_H_
#define PERCOLATOR_STORE_ROCKS_SCAN_CURSOR_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/validate.h"

namespace percolator {

class ScanCursor {
 public:
  struct Range {
    std::string start_key;  // inclusive
    std::string limit_key;  // exclusive
  };
  // The number of versions that the cursors of a scan may still read. They share it.
  struct Budget {
    size_t versions = 0;
  };

  ScanCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const rocksdb::Snapshot* snapshot,
             const Selector& selector, const Range& range, bool reverse, Budget* budget);
  ScanCursor(const ScanCursor&) = delete;
  ScanCursor& operator=(const ScanCursor&) = delete;

  // A cursor is at the end of the range, or on a version that is selected, or has stopped at the start of a row (never
  // its first row) because the budget is used up. The last two have a row.
  bool at_end() const { return state_ == State::kEnd; }
  bool stopped() const { return state_ == State::kStopped; }
  const std::string& row() const { return key_.row; }
  const std::string& row_prefix() const { return row_prefix_; }

  // Appends all selected cells of the row, and moves to the next row. Returns false if the row has too many bytes: it has
  // stopped there and can do no more.
  // REQUIRES: not at_end(), not stopped().
  bool TakeRow(RowBytes* bytes, std::vector<Cell>* out);

  // The error, if reading failed. The cursor is then at its end.
  const absl::Status& status() const { return status_; }

 private:
  enum class State { kOnVersion, kStopped, kEnd };

  void Settle();
  void SettleBefore(std::string limit_key);
  bool EnterRowBefore(const std::string& limit_key);
  bool EnterCell(std::string_view key);
  bool Parse(std::string_view key);
  void Spend();
  void SkipTo(const std::string& target);

  const Selector selector_;
  const bool reverse_;
  // At most one cell of each row is selected, and the cursor seeks it: the row ends with that cell.
  const bool one_cell_;
  const Range range_;
  const rocksdb::Slice start_;
  const rocksdb::Slice limit_;
  Budget* const budget_;
  const std::unique_ptr<rocksdb::Iterator> it_;

  State state_ = State::kEnd;
  absl::Status status_;
  ParsedKey key_;            // of the current cell
  std::string row_prefix_;   // of the current row
  std::string cell_prefix_;  // of the current cell; empty if there is none
  uint32_t taken_ = 0;       // versions selected of the current cell
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_SCAN_CURSOR_H_
