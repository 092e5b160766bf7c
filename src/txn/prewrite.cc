// SPDX-License-Identifier: Apache-2.0

#include "src/txn/prewrite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/own_record.h"
#include "src/txn/record_coding.h"
#include "src/txn/resolve.h"

namespace percolator {
namespace {

absl::StatusOr<Row> ReadObstacles(Environment& env, const RowWrites& row, Timestamp start_ts) {
  RowRead read{row.table, row.row, {{Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)}}};
  for (const CellWrite& cell : row.cells) {
    read.selectors.push_back({Family::kLock, cell.column, TimestampRange::All(), 1});
    SelectRecordsSince(cell.column, start_ts, &read.selectors);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, env.store->Read({std::move(read)}));
  return std::move(rows.front());
}

absl::Status ConflictAt(Conflict::Kind kind, const RowWrites& row, const std::string& column, Timestamp start_ts,
                        Timestamp other_start_ts, Timestamp other_commit_ts = {}) {
  return ConflictError({.kind = kind,
                        .cell = {row.table, row.row, column},
                        .start_ts = start_ts,
                        .other_start_ts = other_start_ts,
                        .other_commit_ts = other_commit_ts});
}

bool IsApplied(const DrawnResult& row) { return row.result.ok() && *row.result == MutateResult::kApplied; }

// T6: the latest timestamp, drawn after all of these locks were taken. Absent unless each lock came with one.
std::optional<Timestamp> DrawnWith(const std::vector<DrawnResult>& locks) {
  std::optional<Timestamp> latest;
  for (const DrawnResult& lock : locks) {
    if (!IsApplied(lock) || !lock.drawn.has_value()) return std::nullopt;
    latest = std::max(latest, lock.drawn);
  }
  return latest;
}

}  // namespace

absl::StatusOr<Obstacle> FindObstacle(Environment& env, const RowWrites& row, Timestamp start_ts) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Row found, ReadObstacles(env, row, start_ts));
  Obstacle obstacle = Obstacle::kNone;
  std::vector<FoundLock> locks;
  std::map<std::string_view, std::vector<const Cell*>> records;  // by column
  absl::Status conflict;
  for (const Cell& cell : found.cells) {
    if (cell.column == RollbackColumn()) {
      conflict = ConflictAt(Conflict::Kind::kRolledBack, row, row.cells[0].column, start_ts, {});
      continue;
    }
    if (cell.family == Family::kLock) {
      absl::StatusOr<Lock> lock = DecodeLock(cell.value);
      if (!lock.ok()) return AtCell(lock.status(), row.table, row.row, cell);
      if (cell.timestamp == start_ts) {
        obstacle = Obstacle::kOwnLock;
      } else {
        locks.push_back({{row.table, row.row, cell.column}, cell.timestamp, *std::move(lock)});
      }
      continue;
    }
    records[cell.column].push_back(&cell);
  }
  for (const auto& [column, cells] : records) {
    PERCOLATOR_ASSIGN_OR_RETURN(const RecordsSince since,
                                FindRecordsSince(env, {row.table, row.row, std::string(column)}, start_ts, cells));
    // It was committed, whatever else is here (T11).
    if (since.own_commit_ts.has_value()) return Obstacle::kOwnRecord;
    if (conflict.ok()) {
      conflict = ConflictAt(Conflict::Kind::kNewerWrite, row, std::string(column), start_ts, since.newest_start_ts,
                            since.newest_commit_ts);
    }
  }
  if (!conflict.ok()) return conflict;
  if (locks.empty()) return obstacle;
  PERCOLATOR_ASSIGN_OR_RETURN(const bool resolved, ResolveLocks(env, locks, LiveLocks::kKeep));
  if (resolved) return Obstacle::kNone;
  // The owner of the lock is alive. If it commits, it commits after this transaction started, which would have to abort
  // anyway. So it does not wait, and two transactions never wait for each other.
  return ConflictAt(Conflict::Kind::kLocked, row, locks[0].cell.column, start_ts, locks[0].start_ts);
}

absl::StatusOr<std::optional<Timestamp>> Prewrite(Environment& env, const Writes& writes, const Deadline& deadline) {
  PERCOLATOR_DCHECK(writes.consistent());
  std::vector<const RowWrites*> pending;
  for (const RowWrites& row : writes.rows) pending.push_back(&row);
  for (Backoff backoff(env.runtime);; backoff.Wait()) {
    std::vector<RowMutation> mutations;
    mutations.reserve(pending.size());
    for (const RowWrites* row : pending) mutations.push_back(BuildPrewriteRow(*row, writes.start_ts));
    const std::vector<DrawnResult> results = env.store->MutateThenDraw(mutations);

    std::vector<const RowWrites*> again;
    for (size_t i = 0; i < results.size(); ++i) {
      if (IsApplied(results[i])) continue;
      absl::StatusOr<Obstacle> obstacle =
          results[i].result.ok() ? FindObstacle(env, *pending[i], writes.start_ts) : results[i].result.status();
      if (obstacle.ok() && *obstacle != Obstacle::kNone) continue;
      // The store may have applied it or not; a second prewrite is harmless (T11).
      if (!obstacle.ok() && (!IsTransient(obstacle.status()) || deadline.passed())) return obstacle.status();
      again.push_back(pending[i]);
      // Checked after every row: resolving the locks of others takes long.
      if (deadline.passed()) {
        return absl::DeadlineExceededError(
            StrCat("transaction ", writes.start_ts.ToString(), " did not get all its locks in ", deadline.waited(),
                   "; tried last: row ", Quoted(pending[i]->row), " of table \"", pending[i]->table, "\""));
      }
    }
    if (again.empty()) return DrawnWith(results);
    pending = std::move(again);
  }
}

}  // namespace percolator
