// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "src/store/rocks/no_perf_counters.h"
#include "src/store/rocks/rocks_store.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

constexpr int kQuickTries = 2;

bool NamesEveryColumn(const RowRead& read) {
  return std::all_of(read.selectors.begin(), read.selectors.end(),
                     [](const Selector& s) { return s.column.has_value(); });
}

}  // namespace

absl::StatusOr<std::vector<Row>> RocksStore::Read(const std::vector<RowRead>& reads) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  std::vector<Row> rows(reads.size());
  PointReader reader(&pools_);
  for (size_t i = 0; i < reads.size(); ++i) {
    PERCOLATOR_RETURN_IF_ERROR(ValidateRead(reads[i], options_.limits));
    PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(reads[i].table));
    PERCOLATOR_RETURN_IF_ERROR(ReadRow(*table, reads[i], &reader, &rows[i]));
    if (table->dropped) return UnknownTable(reads[i].table);
  }
  return rows;
}

// Gives one consistent view of the row (T15): it reads the families one after the other without a snapshot, and the
// latch's count shows whether a write came between. If so, or if the read selects whole families, it reads at a
// snapshot.
absl::Status RocksStore::ReadRow(const Table& table, const RowRead& read, PointReader* reader, Row* out) {
  out->key = read.row;
  RowKeys keys(table.id, read.row);
  const uint32_t stripe = LatchTable::StripeOf(keys.row_prefix());
  // T8: a joint mutation that is under way may have a timestamp that this read has to see. One that closes the row
  // after this check has not (rocks_together.cc).
  if (LatchTable::IsClosed(latches_.Count(stripe))) {
    PERCOLATOR_RETURN_IF_ERROR(WaitUntilOpen(keys.row_prefix(), stripe));
  }
  for (int i = 0; i < kQuickTries && NamesEveryColumn(read); ++i) {
    const uint64_t count = latches_.Count(stripe);
    // RocksDB may show parts of a failed write that locks_ does not have; a snapshot shows all of it or nothing.
    if (!LatchTable::IsQuiet(count) || stopped_) break;
    out->cells.clear();
    reader->Renew();
    PERCOLATOR_RETURN_IF_ERROR(ReadPoints(&keys, read, reader, out));
    if (latches_.StableSince(stripe, count)) return absl::OkStatus();
  }
  out->cells.clear();
  return ReadRowAtSnapshot(keys.row_prefix(), read, out);
}

absl::Status RocksStore::ReadPoints(RowKeys* keys, const RowRead& read, PointReader* reader, Row* out) {
  RowBytes bytes(read.selectors.size(), read.max_bytes, options_.limits);
  for (const Selector& selector : read.selectors) {
    PERCOLATOR_RETURN_IF_ERROR(bytes.Count(out->cells));
    const HashedPrefix cell = keys->GoTo(*selector.column);
    if (selector.family == Family::kLock) {
      locks_.Select(cell, selector, &out->cells);
      continue;
    }
    const bool newest_write = selector.family == Family::kWrite && selector.newest == 1;
    PERCOLATOR_RETURN_IF_ERROR(newest_write ? ReadNewestWrite(keys, selector, reader, bytes.left(), out)
                                            : ReadVersions(keys, selector, reader, bytes.left(), out));
  }
  return bytes.Count(out->cells);
}

// The common read of a transaction. It is cached if it was read lately and the cell has not been written since. As with
// all these reads, the latch's count shows whether a write is under way.
absl::Status RocksStore::ReadNewestWrite(RowKeys* keys, const Selector& selector, PointReader* reader, size_t max_bytes,
                                         Row* out) {
  const uint64_t changes = sketch_->Changes(selector.family, keys->cell());
  Cell& newest = out->cells.emplace_back();
  if (versions_.Find(keys->cell(), changes, selector.range, &newest)) {
    newest.family = selector.family;
    newest.column = *selector.column;
    return absl::OkStatus();
  }
  out->cells.pop_back();
  const size_t before = out->cells.size();
  PERCOLATOR_RETURN_IF_ERROR(ReadVersions(keys, selector, reader, max_bytes, out));
  // The version is the newest of all, and not only of the range, if the cell has no version above the range.
  if (out->cells.size() > before && !sketch_->MayHaveFrom(selector.family, keys->cell(), selector.range.until)) {
    versions_.Fill(keys->cell(), changes, out->cells.back().timestamp, out->cells.back().value);
  }
  return absl::OkStatus();
}

absl::Status RocksStore::ReadVersions(RowKeys* keys, const Selector& selector, PointReader* reader, size_t max_bytes,
                                      Row* out) {
  const NoPerfCounters no_counters;
  PERCOLATOR_ASSIGN_OR_RETURN(const bool found, GetLikelyNewest(keys, selector, out));
  if (found) return absl::OkStatus();
  uint32_t taken = 0;
  size_t bytes = 0;
  return reader->VisitVersions(selector.family, keys, selector.range, [&](Timestamp ts, std::string_view value) {
    out->cells.push_back(Cell{selector.family, *selector.column, ts, std::string(value)});
    bytes += selector.column->size() + value.size();
    return ++taken != selector.newest && bytes <= max_bytes;
  });
}

// Returns true if the newest version was wanted and a guess found it. No version is newer than the guess, so the
// version at the guess is the newest. The latch's count shows whether the guess is outdated.
absl::StatusOr<bool> RocksStore::GetLikelyNewest(RowKeys* keys, const Selector& selector, Row* out) {
  if (selector.newest != 1) return false;
  const std::optional<Timestamp> guess = sketch_->LikelyNewest(selector.family, keys->cell());
  if (!guess.has_value() || !selector.range.Contains(*guess)) return false;
  static const rocksdb::ReadOptions kOptions;
  const std::string_view key = keys->At(*guess);
  Cell& cell = out->cells.emplace_back();
  const rocksdb::Status status =
      db_->Get(kOptions, family(selector.family), rocksdb::Slice(key.data(), key.size()), &cell.value);
  if (status.ok()) {
    cell.family = selector.family;
    cell.column = *selector.column;
    cell.timestamp = *guess;
    return true;
  }
  out->cells.pop_back();
  if (status.IsNotFound()) return false;
  return FromRocks(status, "reading a cell");
}

absl::Status RocksStore::ReadRowAtSnapshot(std::string_view row_prefix, const RowRead& read, Row* out) {
  rocksdb::ManagedSnapshot snapshot(db_.get());
  const ScanCursor::Range only_this_row = {std::string(row_prefix), PastRow(row_prefix)};
  ScanCursor::Budget budget;  // unused: a cursor does not stop at the first row
  RowBytes bytes(read.selectors.size(), read.max_bytes, options_.limits);
  for (const auto& cursor :
       OpenCursors(snapshot.snapshot(), read.selectors, only_this_row, /*reverse=*/false, &budget)) {
    if (!cursor->at_end() && !cursor->TakeRow(&bytes, &out->cells)) return bytes.status();
    if (!cursor->status().ok()) return cursor->status();
  }
  return absl::OkStatus();
}

}  // namespace percolator
