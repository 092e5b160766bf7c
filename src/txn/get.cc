#include "src/txn/get.h"

#include <algorithm>
#include <map>
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

absl::Status LockedTooLong(const MetLock& met, const Deadline& deadline) {
  return absl::DeadlineExceededError(StrCat(Describe(met.cell), " is locked by the transaction that started at ",
                                            met.start_ts.ToString(), ", whose owner is alive: waited ",
                                            deadline.waited()));
}

// The cells of one row, as one RowRead.
struct RowGroup {
  std::vector<size_t> cells;  // indices into the cells asked for
};

// Which of `cells` (those named by `pending`) share a row.
std::vector<RowGroup> GroupByRow(const std::vector<WantedCell>& cells, const std::vector<size_t>& pending) {
  if (pending.size() == 1) return {{pending}};
  std::map<std::pair<std::string_view, std::string_view>, size_t> index;
  std::vector<RowGroup> groups;
  for (const size_t i : pending) {
    const std::string_view table = cells[i].cell.table;
    const std::string_view row = cells[i].cell.row;
    const auto [it, is_new] = index.emplace(std::pair(table, row), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].cells.push_back(i);
  }
  return groups;
}

std::vector<RowRead> ReadsOf(const std::vector<WantedCell>& cells, const std::vector<RowGroup>& groups, Timestamp ts) {
  std::vector<RowRead> reads;
  reads.reserve(groups.size());
  for (const RowGroup& group : groups) {
    const CellName& first = cells[group.cells[0]].cell;
    RowRead& read = reads.emplace_back(RowRead{first.table, first.row, {}});
    read.selectors.reserve(2 * group.cells.size());
    for (const size_t i : group.cells) AddSelectors(cells[i].cell.column, ts, &read.selectors);
  }
  return reads;
}

ColumnState* FindColumn(std::vector<ColumnState>* columns, const std::string& column) {
  const auto it =
      std::lower_bound(columns->begin(), columns->end(), column,
                       [](const ColumnState& state, const std::string& name) { return state.column < name; });
  return it != columns->end() && it->column == column ? &*it : nullptr;
}

absl::Status CheckAgainst(const absl::StatusOr<Timestamp>& safe_point, Timestamp ts) {
  if (!safe_point.ok()) return safe_point.status();
  if (ts >= *safe_point) return absl::OkStatus();
  return absl::OutOfRangeError(
      StrCat("the snapshot at ", ts.ToString(), " is too old: garbage is collected up to ", safe_point->ToString()));
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
                                        const Deadline& deadline) {
  Counters::Add(&env.counters.store_reads);
  absl::StatusOr<std::vector<Row>> rows = ReadOnceAt(env, ts, reads);
  for (Backoff backoff(env.runtime); !rows.ok() && WaitAndRetry(rows.status(), deadline, &backoff);) {
    rows = ReadOnceAt(env, ts, reads);
  }
  return rows;
}

void AddSelectors(std::optional<std::string> column, Timestamp ts, std::vector<Selector>* selectors) {
  const TimestampRange visible = TimestampRange::UpTo(ts);
  selectors->push_back({Family::kLock, column, visible, 1});
  selectors->push_back({Family::kWrite, std::move(column), visible, 1});
}

absl::StatusOr<std::vector<ColumnState>> ParseRow(const std::string& table, Row row) {
  // Cells come by selector: a column's lock and its record are next to each other only if columns were named.
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
      state.lock = MetLock{{table, row.key, cell.column}, cell.timestamp, *std::move(lock)};
    } else {
      absl::StatusOr<WriteRecord> record = TakeWriteRecord(std::move(cell.value));
      if (!record.ok()) return AtCell(record.status(), table, row.key, cell);
      state.record = *std::move(record);
      state.commit_ts = cell.timestamp;
    }
  }
  return columns;
}

Version VersionOf(ColumnState* state) {
  Version version;
  if (!state->record.has_value()) return version;
  version.commit_ts = state->commit_ts;
  if (state->record->kind == WriteKind::kPut) {
    version.value = std::move(state->record->value);
    if (!version.value.has_value()) version.data_ts = state->record->start_ts;
  }
  return version;
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
    state.record.reset();  // a delete that garbage collection took, or nothing at all
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
      return AtCell(absl::DataLossError(StrCat("a write record has no data at ", version->data_ts.ToString())),
                    cell.table, cell.row, {Family::kWrite, cell.column, version->commit_ts, {}});
    }
    version->value = std::move(rows[i].cells.front().value);
    version->data_ts = Timestamp();
  }
  return absl::OkStatus();
}

absl::Status ResolveOrWait(Environment& env, const std::vector<MetLock>& locks, const Deadline& deadline,
                           Backoff* backoff) {
  const absl::StatusOr<bool> all = ResolveLocks(env, locks, Patience::kWhileAlive);
  if (all.ok() && *all) return absl::OkStatus();
  if (!all.ok() && !IsTransient(all.status())) return all.status();
  if (deadline.passed()) return all.ok() ? LockedTooLong(locks.front(), deadline) : all.status();
  backoff->Wait();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Version>> GetPlainCell(Environment& env, Timestamp ts, std::string_view table,
                                                    std::string_view row, std::string_view column) {
  std::vector<RowRead> reads;
  RowRead& read = reads.emplace_back(RowRead{std::string(table), std::string(row), {}});
  read.selectors.reserve(2);
  AddSelectors(std::string(column), ts, &read.selectors);
  Counters::Add(&env.counters.store_reads);
  absl::StatusOr<std::vector<Row>> rows = env.store->Read(reads);
  if (!rows.ok())
    return IsTransient(rows.status()) ? absl::StatusOr<std::optional<Version>>(std::nullopt) : rows.status();
  PERCOLATOR_RETURN_IF_ERROR(CheckAfterRead(env, ts));  // G3; no request of its own
  std::vector<Cell>& cells = rows->front().cells;
  if (cells.empty()) return Version();
  if (cells.size() > 1 || cells[0].family != Family::kWrite) return std::nullopt;
  absl::StatusOr<WriteRecord> record = TakeWriteRecord(std::move(cells[0].value));
  if (!record.ok()) return AtCell(record.status(), table, row, cells[0]);
  if (record->kind == WriteKind::kVerify) return std::nullopt;
  if (record->kind == WriteKind::kPut && !record->value.has_value()) return std::nullopt;
  return Version{.commit_ts = cells[0].timestamp, .value = std::move(record->value), .data_ts = {}};
}

absl::StatusOr<std::vector<std::optional<Version>>> GetCells(Environment& env, Timestamp ts,
                                                             const std::vector<WantedCell>& cells,
                                                             const Deadline& deadline) {
  std::vector<std::optional<Version>> versions(cells.size());
  std::vector<size_t> pending(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) pending[i] = i;
  for (Backoff backoff(env.runtime); !pending.empty();) {
    const std::vector<RowGroup> groups = GroupByRow(cells, pending);
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadAt(env, ts, ReadsOf(cells, groups, ts), deadline));

    std::vector<std::vector<ColumnState>> states;
    std::vector<std::pair<CellName, ColumnState*>> verified;
    std::vector<std::pair<size_t, ColumnState*>> found;
    std::vector<MetLock> locks;
    pending.clear();
    states.reserve(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      absl::StatusOr<std::vector<ColumnState>> columns =
          ParseRow(cells[groups[g].cells[0]].cell.table, std::move(rows[g]));
      if (!columns.ok()) return columns.status();
      states.push_back(*std::move(columns));
      for (const size_t i : groups[g].cells) {
        ColumnState* state = FindColumn(&states.back(), cells[i].cell.column);
        if (state == nullptr) {
          versions[i].emplace();
        } else if (!state->lock.has_value()) {
          found.emplace_back(i, state);
          if (state->record->kind == WriteKind::kVerify) verified.emplace_back(cells[i].cell, state);
        } else if (cells[i].needed) {
          locks.push_back(*state->lock);
          pending.push_back(i);
        }
      }
    }
    PERCOLATOR_RETURN_IF_ERROR(FollowVerified(env, ts, verified, deadline));
    std::vector<std::pair<CellName, Version*>> to_load;
    for (const auto& [i, state] : found) {
      versions[i] = VersionOf(state);
      if (cells[i].needed && versions[i]->data_ts != Timestamp()) to_load.emplace_back(cells[i].cell, &*versions[i]);
    }
    PERCOLATOR_RETURN_IF_ERROR(LoadValues(env, ts, to_load, deadline));
    if (locks.empty()) break;
    PERCOLATOR_RETURN_IF_ERROR(ResolveOrWait(env, locks, deadline, &backoff));
  }
  return versions;
}

}  // namespace percolator
