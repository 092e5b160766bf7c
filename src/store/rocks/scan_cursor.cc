// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/scan_cursor.h"

#include "absl/strings/escaping.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/rocks/rocks_status.h"

namespace percolator {
namespace {

// Up to this number of steps costs less than a seek.
constexpr int kStepsBeforeSeek = 8;

std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

rocksdb::ReadOptions ScanOptions(const rocksdb::Snapshot* snapshot, const rocksdb::Slice* start,
                                 const rocksdb::Slice* limit) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.iterate_lower_bound = start;
  options.iterate_upper_bound = limit;
  options.total_order_seek = true;        // over many cells, so no filter by cell
  options.ignore_range_deletions = true;  // see IteratorPool::Take
  return options;
}

}  // namespace

ScanCursor::ScanCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const rocksdb::Snapshot* snapshot,
                       const Selector& selector, const Range& range, bool reverse, Budget* budget)
    : selector_(selector),
      reverse_(reverse),
      one_cell_(reverse && selector.column.has_value()),
      range_(range),
      start_(range_.start_key),
      limit_(range_.limit_key),
      budget_(budget),
      it_(db->NewIterator(ScanOptions(snapshot, reverse ? &start_ : nullptr, &limit_), family)) {
  if (selector_.range.empty() || range_.start_key >= range_.limit_key) return;
  if (reverse_) {
    SettleBefore(range_.limit_key);
    return;
  }
  it_->Seek(start_);
  Settle();
}

bool ScanCursor::TakeRow(RowBytes* bytes, std::vector<Cell>* out) {
  PERCOLATOR_DCHECK(!at_end() && !stopped());
  const std::string row_prefix = row_prefix_;
  while (state_ == State::kOnVersion && row_prefix_ == row_prefix) {
    if (!bytes->Add(key_.column, it_->value().size())) return false;
    out->push_back(Cell{selector_.family, key_.column, TimestampOf(View(it_->key())), it_->value().ToString()});
    ++taken_;
    Spend();
    it_->Next();
    Settle();
  }
  if (reverse_ && status_.ok()) SettleBefore(row_prefix);
  return true;
}

// Moves to the last row before `limit_key` with a selected version, and to the first selected version in it.
void ScanCursor::SettleBefore(std::string limit_key) {
  do {
    if (!EnterRowBefore(limit_key)) return;
    it_->Seek(one_cell_ ? SeekKeyBelow(CellPrefix(row_prefix_, *selector_.column), selector_.range.until)
                        : row_prefix_);
    Settle();
    limit_key = row_prefix_;
  } while (state_ == State::kEnd && status_.ok());  // kEnd means the end of the row
}

// Returns false if there is no row before `limit_key`, or no budget for it, or reading failed.
bool ScanCursor::EnterRowBefore(const std::string& limit_key) {
  state_ = State::kEnd;
  it_->SeekForPrev(limit_key);  // no version has a key as short as this
  if (!it_->Valid()) {
    status_ = FromRocks(it_->status(), "scanning");
    return false;
  }
  const std::string_view key = View(it_->key());
  if (!Parse(key)) return false;
  const bool first = row_prefix_.empty();
  row_prefix_ = key.substr(0, key_.row_prefix_bytes);
  cell_prefix_.clear();
  if (!first && budget_->versions == 0) {
    state_ = State::kStopped;
    return false;
  }
  for (int i = 0; i < kStepsBeforeSeek; ++i) Spend();  // two seeks, even if nothing in the row is selected
  return true;
}

// Moves forward to the first version that is selected, unless the cursor is on one. A reverse cursor that finds none in
// the row is then at its end, until it moves to the row before.
void ScanCursor::Settle() {
  for (; it_->Valid(); Spend()) {
    const std::string_view key = View(it_->key());
    if (CellPrefixOf(key) != cell_prefix_ && !EnterCell(key)) return;
    if (selector_.column.has_value() && key_.column != *selector_.column) {
      if (one_cell_) break;
      SkipTo(key_.column < *selector_.column
                 ? SeekKeyBelow(CellPrefix(row_prefix_, *selector_.column), selector_.range.until)
                 : PastRow(row_prefix_));
      continue;
    }
    const Timestamp ts = TimestampOf(key);
    if (ts >= selector_.range.until) {
      SkipTo(SeekKeyBelow(cell_prefix_, selector_.range.until));
    } else if (ts < selector_.range.from ||
               (taken_ == selector_.newest && selector_.newest != Selector::kAllVersions)) {
      if (one_cell_) break;
      SkipTo(PastCell(cell_prefix_));
    } else {
      state_ = State::kOnVersion;
      return;
    }
  }
  state_ = State::kEnd;
  status_ = FromRocks(it_->status(), "scanning");
}

// Returns false if the cursor cannot go on: the budget is used up, the key is corrupt, or, in reverse, the row ends
// here.
bool ScanCursor::EnterCell(std::string_view key) {
  const bool first = row_prefix_.empty();
  if (!Parse(key)) return false;
  taken_ = 0;
  cell_prefix_ = CellPrefixOf(key);
  const std::string_view row_prefix = key.substr(0, key_.row_prefix_bytes);
  if (row_prefix == row_prefix_) return true;
  if (reverse_) {
    state_ = State::kEnd;
    return false;
  }
  row_prefix_ = row_prefix;
  if (first || budget_->versions > 0) return true;
  state_ = State::kStopped;
  return false;
}

bool ScanCursor::Parse(std::string_view key) {
  if (ParseCellKey(key, &key_)) return true;
  status_ =
      absl::DataLossError(StrCat("the store has a key that is not valid: ", absl::BytesToHexString(std::string(key))));
  state_ = State::kEnd;
  return false;
}

// Counts one version that was read.
void ScanCursor::Spend() {
  if (budget_->versions > 0) --budget_->versions;
}

void ScanCursor::SkipTo(const std::string& target) {
  for (int i = 0; i < kStepsBeforeSeek; ++i) {
    it_->Next();
    if (!it_->Valid() || it_->key().compare(target) >= 0) return;
  }
  it_->Seek(target);
}

}  // namespace percolator
