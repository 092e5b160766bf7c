// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "src/store/rocks/rocks_store.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

size_t BytesIn(const Row& row) {
  size_t bytes = row.key.size();
  for (const Cell& cell : row.cells) bytes += cell.column.size() + cell.value.size() + sizeof(Timestamp);
  return bytes;
}

// Returns the cursor with the first row, or with the last row if `reverse`. Returns null if all are at their ends.
ScanCursor* FirstInOrder(const std::vector<std::unique_ptr<ScanCursor>>& cursors, bool reverse) {
  ScanCursor* first = nullptr;
  for (const auto& cursor : cursors) {
    if (cursor->at_end()) continue;
    const bool before = first == nullptr || (reverse ? first->row_prefix() < cursor->row_prefix()
                                                     : cursor->row_prefix() < first->row_prefix());
    if (before) first = cursor.get();
  }
  return first;
}

// Takes the row from every cursor that is in it. Returns false if a cursor has stopped in the row, or the row has too many
// bytes: it may then not be returned.
bool TakeRow(const std::string& row_prefix, const std::vector<std::unique_ptr<ScanCursor>>& cursors, RowBytes* bytes,
             Row* row) {
  const auto in_row = [&](const auto& cursor) { return !cursor->at_end() && cursor->row_prefix() == row_prefix; };
  for (const auto& cursor : cursors) {
    if (in_row(cursor) && cursor->stopped()) return false;
  }
  for (const auto& cursor : cursors) {
    if (in_row(cursor) && !cursor->TakeRow(bytes, &row->cells)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::unique_ptr<ScanCursor>> RocksStore::OpenCursors(const rocksdb::Snapshot* snapshot,
                                                                 const std::vector<Selector>& selectors,
                                                                 const ScanCursor::Range& range, bool reverse,
                                                                 ScanCursor::Budget* budget) {
  std::vector<std::unique_ptr<ScanCursor>> cursors;
  cursors.reserve(selectors.size());
  for (const Selector& selector : selectors) {
    cursors.push_back(
        std::make_unique<ScanCursor>(db_.get(), family(selector.family), snapshot, selector, range, reverse, budget));
  }
  return cursors;
}

absl::StatusOr<ScanPage> RocksStore::Scan(const ScanRequest& request) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  PERCOLATOR_RETURN_IF_ERROR(ValidateScan(request, options_.limits));
  PERCOLATOR_ASSIGN_OR_RETURN(auto* table, FindTable(request.table));
  const uint32_t id = table->id;
  const ScanCursor::Range range = {RowPrefix(id, request.rows.start), request.rows.limit.has_value()
                                                                          ? RowPrefix(id, *request.rows.limit)
                                                                          : TablePrefix(id + 1)};
  PERCOLATOR_RETURN_IF_ERROR(WaitUntilOpen(range));  // T8
  rocksdb::ManagedSnapshot snapshot(db_.get());
  ScanCursor::Budget budget{options_.limits.max_scan_work};
  const auto cursors = OpenCursors(snapshot.snapshot(), request.selectors, range, request.reverse, &budget);

  ScanPage page;
  size_t bytes = 0;
  while (const ScanCursor* first = FirstInOrder(cursors, request.reverse)) {
    Row row{first->row(), {}};
    const std::string row_prefix = first->row_prefix();
    const bool full =
        page.rows.size() == request.row_limit || (!page.rows.empty() && bytes >= options_.limits.max_scan_bytes);
    RowBytes row_bytes(cursors.size(), request.max_row_bytes, options_.limits);
    if (full || !TakeRow(row_prefix, cursors, &row_bytes, &row)) {
      if (page.rows.empty()) PERCOLATOR_RETURN_IF_ERROR(row_bytes.status());
      page.resume = std::move(row.key);
      if (request.reverse) page.resume->push_back('\0');  // the next page begins with this row
      break;
    }
    bytes += BytesIn(row);
    page.rows.push_back(std::move(row));
  }
  for (const auto& cursor : cursors) {
    if (!cursor->status().ok()) return cursor->status();
  }
  if (table->dropped) return UnknownTable(request.table);
  return page;
}

}  // namespace percolator
