// SPDX-License-Identifier: Apache-2.0

#include "src/txn/row_view.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/txn/record_coding.h"
#include "src/txn/resolve.h"

namespace percolator {
namespace {

std::string Describe(const CellName& cell) {
  return StrCat("column ", absl::CHexEscape(cell.column), " of row ", absl::CHexEscape(cell.row), " in table ",
                cell.table);
}

absl::Status LockedTooLong(const FoundLock& met, const Deadline& deadline) {
  return absl::DeadlineExceededError(StrCat(Describe(met.cell), " is locked by transaction ", met.start_ts.ToString(),
                                            ", whose owner is alive; waited ", deadline.waited()));
}

absl::Status CheckAgainst(const absl::StatusOr<Timestamp>& safe_point, Timestamp ts) {
  if (!safe_point.ok()) return safe_point.status();
  if (ts >= *safe_point) return absl::OkStatus();
  return absl::OutOfRangeError(
      StrCat("snapshot ", ts.ToString(), " is too old: it is not newer than the safe point ", safe_point->ToString()));
}

absl::StatusOr<std::vector<Row>> ReadOnceAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads) {
  absl::StatusOr<std::vector<Row>> rows = env.store->Read(reads);
  if (!rows.ok()) return rows.status();
  PERCOLATOR_RETURN_IF_ERROR(CheckAfterRead(env, ts));
  return rows;
}

}  // namespace

absl::Status CheckSnapshot(Environment& env, Timestamp ts) { return CheckAgainst(env.store->SafePoint(), ts); }

absl::Status CheckAfterRead(Environment& env, Timestamp ts) { return CheckAgainst(env.store->SafePointOfReads(), ts); }

absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        absl::FunctionRef<Deadline()> make_deadline) {
  Counters::Add(&env.counters.store_reads);
  absl::StatusOr<std::vector<Row>> rows = ReadOnceAt(env, ts, reads);
  if (rows.ok()) return rows;
  return RetryAfter(std::move(rows), make_deadline(), [&] { return ReadOnceAt(env, ts, reads); });
}

absl::StatusOr<std::vector<Row>> ReadAt(Environment& env, Timestamp ts, const std::vector<RowRead>& reads,
                                        const Deadline& deadline) {
  return ReadAt(env, ts, reads, [&] { return deadline; });
}

void AddSelectors(std::optional<std::string> column, Timestamp ts, std::vector<Selector>* selectors) {
  const TimestampRange visible = TimestampRange::UpTo(ts);
  selectors->push_back({Family::kLock, column, visible, 1});
  selectors->push_back({Family::kWrite, std::move(column), visible, 1});
}

absl::StatusOr<std::vector<ColumnState>> ParseRow(const std::string& table, Row row) {
  // Cells come by selector: a column's lock and record are adjacent only if columns were named.
  std::stable_sort(row.cells.begin(), row.cells.end(),
                   [](const Cell& a, const Cell& b) { return a.column < b.column; });
  std::vector<ColumnState> columns;
  columns.reserve(row.cells.size());
  for (Cell& cell : row.cells) {
    if (columns.empty() || columns.back().column != cell.column) columns.push_back({.column = cell.column});
    ColumnState& state = columns.back();
    if (cell.family == Family::kLock) {
      absl::StatusOr<Lock> lock = DecodeLock(cell.value);
      if (!lock.ok()) return AtCell(lock.status(), table, row.key, cell);
      state.lock = FoundLock{{table, row.key, cell.column}, cell.timestamp, *std::move(lock)};
    } else {
      absl::StatusOr<WriteRecord> record = TakeWriteRecord(std::move(cell.value));
      if (!record.ok()) return AtCell(record.status(), table, row.key, cell);
      state.record = *std::move(record);
      state.commit_ts = cell.timestamp;
    }
  }
  return columns;
}

Version VersionOf(WriteRecord& record, Timestamp commit_ts) {
  Version version;
  version.commit_ts = commit_ts;
  if (record.kind == WriteKind::kPut) {
    version.value = std::move(record.value);
    if (!version.value.has_value()) version.data_ts = record.start_ts;
  }
  return version;
}

Version VersionOf(ColumnState* state) {
  return state->record.has_value() ? VersionOf(*state->record, state->commit_ts) : Version();
}

absl::Status FollowVerified(Environment& env, Timestamp ts,
                            const std::vector<std::pair<CellName, ColumnState*>>& verified, const Deadline& deadline) {
  std::vector<RowRead> reads;
  for (const auto& [cell, state] : verified) {
    const TimestampRange range = TimestampRange::Exactly(state->record->verified);
    reads.push_back({cell.table, cell.row, {{Family::kWrite, cell.column, range, 1}}});
  }
  if (reads.empty()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadAt(env, ts, reads, deadline));
  for (size_t i = 0; i < verified.size(); ++i) {
    ColumnState& state = *verified[i].second;
    state.record.reset();  // a delete that garbage collection removed, or no version at all
    if (rows[i].cells.empty()) continue;
    const Cell& cell = rows[i].cells.front();
    absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
    if (!record.ok()) return AtCell(record.status(), verified[i].first.table, verified[i].first.row, cell);
    state.record = *std::move(record);
    state.commit_ts = cell.timestamp;
  }
  return absl::OkStatus();
}

absl::Status LoadValues(Environment& env, Timestamp ts, const std::vector<std::pair<CellName, Version*>>& versions,
                        const Deadline& deadline) {
  std::vector<RowRead> reads;
  for (const auto& [cell, version] : versions) {
    reads.push_back({cell.table, cell.row, {{Family::kData, cell.column, TimestampRange::Exactly(version->data_ts)}}});
  }
  if (reads.empty()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadAt(env, ts, reads, deadline));
  for (size_t i = 0; i < versions.size(); ++i) {
    const auto& [cell, version] = versions[i];
    if (rows[i].cells.empty()) {  // G5: data goes only with its record, and that was not collected
      return AtCell(absl::DataLossError(StrCat("no data for a write record at ", version->data_ts.ToString())),
                    cell.table, cell.row, {Family::kWrite, cell.column, version->commit_ts, {}});
    }
    version->value = std::move(rows[i].cells.front().value);
    version->data_ts = Timestamp();
  }
  return absl::OkStatus();
}

absl::Status ResolveOrWait(Environment& env, const std::vector<FoundLock>& locks, const Deadline& deadline,
                           Backoff* backoff) {
  const absl::StatusOr<bool> all = ResolveLocks(env, locks, LiveLocks::kKeep);
  if (all.ok() && *all) return absl::OkStatus();
  if (!all.ok() && !IsTransient(all.status())) return all.status();
  if (deadline.passed()) return all.ok() ? LockedTooLong(locks.front(), deadline) : all.status();
  backoff->Wait();
  return absl::OkStatus();
}

}  // namespace percolator
