// SPDX-License-Identifier: Apache-2.0

#include "src/txn/scan.h"

#include <algorithm>

#include "percolator/status_macros.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

constexpr size_t kPageGrowth = 8;

// Rows whose long values are in memory at the same time.
constexpr size_t kRowsAtOnce = 32;

bool HasLock(const std::vector<ColumnState>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnState& c) { return c.lock.has_value(); });
}

// Returns the user's columns of a row.
absl::StatusOr<std::vector<ColumnState>> ParseUserColumns(const std::string& table, Row row) {
  std::erase_if(row.cells, [](const Cell& cell) { return IsReservedColumn(cell.column); });
  return ParseRow(table, std::move(row));
}

}  // namespace

SnapshotScan::SnapshotScan(Environment* env, Timestamp ts, std::string table, ScanOptions options)
    : env_(env),
      ts_(ts),
      keys_only_(options.keys_only),
      request_{.table = std::move(table), .rows = std::move(options.rows), .reverse = options.reverse} {
  if (options.limit > 0) request_.row_limit = std::min(request_.row_limit, options.limit);
  std::sort(options.columns.begin(), options.columns.end());
  options.columns.erase(std::unique(options.columns.begin(), options.columns.end()), options.columns.end());
  for (std::string& column : options.columns) AddSelectors(std::move(column), ts_, &request_.selectors);
  if (request_.selectors.empty()) AddSelectors(std::nullopt, ts_, &request_.selectors);
}

absl::StatusOr<std::optional<ScannedRow>> SnapshotScan::Next(const Deadline& deadline) {
  while (ready_.empty() && (!page_.empty() || !at_end_)) {
    PERCOLATOR_RETURN_IF_ERROR(page_.empty() ? FetchPage(deadline) : FinishSomeRows(deadline));
  }
  if (ready_.empty()) return std::nullopt;
  std::optional<ScannedRow> row = std::move(ready_.front());
  ready_.pop_front();
  return row;
}

absl::StatusOr<ScanPage> SnapshotScan::ReadPage(const Deadline& deadline) {
  Counters::Add(&env_->counters.store_reads);
  return RetryUntil(deadline, [this]() -> absl::StatusOr<ScanPage> {
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, env_->store->Scan(request_));
    PERCOLATOR_RETURN_IF_ERROR(CheckAfterRead(*env_, ts_));  // G3
    return page;
  });
}

absl::Status SnapshotScan::FetchPage(const Deadline& deadline) {
  PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, ReadPage(deadline));
  std::vector<RowStates> rows;
  rows.reserve(page.rows.size());
  for (Row& row : page.rows) {
    std::string key = row.key;
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ColumnState> columns, ParseUserColumns(request_.table, std::move(row)));
    rows.push_back({std::move(key), std::move(columns)});
  }
  PERCOLATOR_RETURN_IF_ERROR(ResolveRows(&rows, deadline));
  for (RowStates& row : rows) page_.push_back(std::move(row));
  if (page.resume.has_value()) {
    request_.ContinueAt(*std::move(page.resume));
    // All rows of a small page may be deleted ones.
    request_.row_limit = std::min(request_.row_limit * kPageGrowth, ScanRequest().row_limit);
  } else {
    at_end_ = true;
  }
  return absl::OkStatus();
}

// Resolves until no row of the page has a lock that could hide a version.
absl::Status SnapshotScan::ResolveRows(std::vector<RowStates>* rows, const Deadline& deadline) {
  for (Backoff backoff(env_->runtime);;) {
    std::vector<RowStates*> locked;
    std::vector<RowRead> reads;
    std::vector<FoundLock> locks;
    for (RowStates& row : *rows) {
      if (!HasLock(row.columns)) continue;
      locked.push_back(&row);
      reads.push_back({request_.table, row.key, request_.selectors});
      for (const ColumnState& column : row.columns) {
        if (column.lock.has_value()) locks.push_back(*column.lock);
      }
    }
    if (locked.empty()) return absl::OkStatus();
    PERCOLATOR_RETURN_IF_ERROR(ResolveOrWait(*env_, locks, deadline, &backoff));
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> again, ReadAt(*env_, ts_, reads, deadline));
    for (size_t i = 0; i < locked.size(); ++i) {
      PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ColumnState> columns,
                                  ParseUserColumns(request_.table, std::move(again[i])));
      locked[i]->columns = std::move(columns);
    }
  }
}

absl::Status SnapshotScan::FinishSomeRows(const Deadline& deadline) {
  std::vector<RowStates> rows;
  for (; !page_.empty() && rows.size() < kRowsAtOnce; page_.pop_front()) rows.push_back(std::move(page_.front()));

  std::vector<std::pair<CellName, ColumnState*>> verified;
  for (RowStates& row : rows) {
    for (ColumnState& column : row.columns) {
      if (column.record->kind == WriteKind::kVerify)
        verified.emplace_back(CellName{request_.table, row.key, column.column}, &column);
    }
  }
  PERCOLATOR_RETURN_IF_ERROR(FollowVerified(*env_, ts_, verified, deadline));

  std::vector<std::vector<Version>> versions(rows.size());
  std::vector<std::pair<CellName, Version*>> to_load;
  for (size_t i = 0; i < rows.size(); ++i) {
    versions[i].reserve(rows[i].columns.size());
    for (ColumnState& column : rows[i].columns) {
      Version& version = versions[i].emplace_back(VersionOf(&column));
      if (version.data_ts != Timestamp() && !keys_only_)
        to_load.emplace_back(CellName{request_.table, rows[i].key, column.column}, &version);
    }
  }
  PERCOLATOR_RETURN_IF_ERROR(LoadValues(*env_, ts_, to_load, deadline));

  for (size_t i = 0; i < rows.size(); ++i) {
    ScannedRow row{std::move(rows[i].key), {}};
    for (size_t c = 0; c < versions[i].size(); ++c) {
      Version& version = versions[i][c];
      if (!version.value.has_value() && version.data_ts == Timestamp()) continue;  // a delete
      row.columns.push_back({std::move(rows[i].columns[c].column), std::move(version.value).value_or("")});
    }
    if (!row.columns.empty()) ready_.push_back(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace percolator
