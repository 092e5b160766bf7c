// SPDX-License-Identifier: Apache-2.0

#include "src/txn/own_record.h"

#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/txn/record_coding.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

// Two, because most transactions that lose, lose to one: then nothing more has to be read.
constexpr uint32_t kNewest = 2;

// Returns the oldest record in the range, if there is one.
absl::StatusOr<std::optional<Cell>> FindOldest(Environment& env, const CellName& name, TimestampRange range) {
  std::optional<Cell> oldest;
  Timestamp middle = range.until;  // first, whether there is any
  while (!range.empty()) {
    PERCOLATOR_ASSIGN_OR_RETURN(
        std::vector<Row> rows,
        env.store->Read({{name.table, name.row, {{Family::kWrite, name.column, {range.from, middle}, 1}}}}));
    if (!rows.front().cells.empty()) {
      oldest = std::move(rows.front().cells.front());
      range.until = oldest->timestamp;
    } else if (oldest.has_value()) {
      range.from = middle;
    } else {
      return oldest;
    }
    middle = Timestamp(range.from.value() + (range.until.value() - range.from.value() + 1) / 2);
  }
  return oldest;
}

}  // namespace

void SelectRecordsSince(const std::string& column, Timestamp start_ts, std::vector<Selector>* selectors) {
  selectors->push_back({Family::kWrite, column, TimestampRange::From(start_ts), kNewest});
}

absl::StatusOr<RecordsSince> FindRecordsSince(Environment& env, const CellName& cell, Timestamp start_ts,
                                              const std::vector<const Cell*>& found) {
  RecordsSince records;
  const auto look_at = [&](const Cell& at) -> absl::Status {
    const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(at.value);
    if (!record.ok()) return AtCell(record.status(), cell.table, cell.row, at);
    if (record->start_ts == start_ts) {
      records.own_commit_ts = at.timestamp;
    } else if (records.newest_commit_ts < at.timestamp) {
      records.newest_commit_ts = at.timestamp;
      records.newest_start_ts = record->start_ts;
    }
    return absl::OkStatus();
  };
  for (const Cell* at : found) PERCOLATOR_RETURN_IF_ERROR(look_at(*at));
  if (records.own_commit_ts.has_value() || found.size() < kNewest) return records;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Cell> oldest,
                              FindOldest(env, cell, {start_ts, found.back()->timestamp}));
  if (oldest.has_value()) PERCOLATOR_RETURN_IF_ERROR(look_at(*oldest));
  return records;
}

}  // namespace percolator
