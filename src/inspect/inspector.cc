// SPDX-License-Identifier: Apache-2.0

// The public class Inspector. See percolator/inspect.h.

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/inspect/check_cells.h"
#include "src/observe/quarantine.h"
#include "src/observe/registry.h"
#include "src/observe/run.h"
#include "src/txn/columns.h"
#include "src/txn/engine.h"
#include "src/txn/lock.h"
#include "src/txn/record_coding.h"
#include "src/txn/resolve.h"
#include "src/txn/tables.h"

namespace percolator {
namespace {

// Rows in one page of a list.
constexpr size_t kRowsAtOnce = 1000;

// Returns the tables to read: the requested one, or all, Percolator's own too.
absl::StatusOr<std::vector<std::string>> TablesToList(Environment& env, std::string_view table) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(env.store.get()));
  std::vector<std::string> names;
  for (const TableInfo& info : infos) {
    if (table.empty() || info.name == table) names.push_back(info.name);
  }
  if (!table.empty() && names.empty()) return absl::NotFoundError(StrCat("there is no table ", Quoted(table)));
  return names;
}

// Returns whether `status` is the NotFound of a table that was dropped while all tables were read, which is not an
// error.
bool WasDropped(const absl::Status& status, std::string_view asked_for) {
  return asked_for.empty() && absl::IsNotFound(status);
}

// Calls `use` for every page of locks of a table, until it returns that it has enough.
absl::Status ForEachPageOfLocks(Environment& env, const std::string& table,
                                const std::function<absl::StatusOr<bool>(std::vector<FoundLock> locks)>& use) {
  ScanRequest request{table, RowRange::All(), {{Family::kLock}}, kRowsAtOnce};
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, env.store->Scan(request));
    std::vector<FoundLock> locks;
    for (const Row& row : page.rows) {
      for (const Cell& cell : row.cells) {
        absl::StatusOr<Lock> lock = DecodeLock(cell.value);
        if (!lock.ok()) return AtCell(lock.status(), table, row.key, cell);
        locks.push_back({{table, row.key, cell.column}, cell.timestamp, *std::move(lock)});
      }
    }
    const absl::StatusOr<bool> more = use(std::move(locks));
    if (!more.ok() || !*more || !page.resume.has_value()) return more.status();
    request.ContinueAt(*std::move(page.resume));
  }
}

LockInfo::State StateOf(const LockStatus& status) {
  if (!status.verdict.has_value()) return status.alive ? LockInfo::State::kAlive : LockInfo::State::kAbandoned;
  return status.verdict->kind == Verdict::Kind::kCommitted ? LockInfo::State::kCommitted : LockInfo::State::kRolledBack;
}

Duration AgeOf(Timestamp ts, Timestamp now) { return Duration(now > ts ? now.value() - ts.value() : 0); }

// Adds the facts that only the primaries know, with one read for all locks of a transaction.
absl::StatusOr<std::vector<LockInfo>> Look(Environment& env, const std::vector<FoundLock>& locks) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, DrawForCall(env));
  std::map<Timestamp, LockInfo::State> states;
  std::vector<LockInfo> infos;
  for (const FoundLock& met : locks) {
    if (!states.contains(met.start_ts)) {
      PERCOLATOR_ASSIGN_OR_RETURN(const LockStatus status, InspectLock(env, met));
      states[met.start_ts] = StateOf(status);
    }
    infos.push_back({.cell = met.cell,
                     .start_ts = met.start_ts,
                     .primary = met.primary(),
                     .session = met.lock.session,
                     .state = states[met.start_ts],
                     .age = AgeOf(met.start_ts, now)});
  }
  return infos;
}

// Settles the locks whose owners are not alive, and counts them.
absl::Status Settle(Environment& env, const std::vector<FoundLock>& locks, Inspector::ResolvedLocks* counts) {
  std::vector<FoundLock> decided;
  for (const FoundLock& met : locks) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Verdict verdict, Decide(env, met, LiveLocks::kKeep));
    if (verdict.kind == Verdict::Kind::kPending) {
      ++counts->alive;
      continue;
    }
    ++(verdict.kind == Verdict::Kind::kCommitted ? counts->rolled_forward : counts->rolled_back);
    decided.push_back(met);
  }
  return decided.empty() ? absl::OkStatus() : ResolveLocks(env, decided, LiveLocks::kKeep).status();
}

}  // namespace

Inspector::Inspector(const Cluster& cluster) : engine_(cluster.engine()) {}

absl::StatusOr<std::vector<TableDescription>> Inspector::ListTables() const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<TableDescription>> {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(engine_->env.store.get()));
    std::vector<TableDescription> tables;
    for (const TableInfo& info : infos) {
      if (info.name == kSystemTable) continue;
      PERCOLATOR_ASSIGN_OR_RETURN(TableSchema schema, DecodeSchema(info.name, info.schema));
      tables.push_back({info.name, std::move(schema)});
    }
    return tables;
  });
}

absl::StatusOr<std::vector<ObserverInfo>> Inspector::ListObservers() const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<ObserverInfo>> { return LoadObservers(engine_.get()); });
}

absl::StatusOr<std::vector<Cell>> Inspector::ReadCells(std::string_view table, std::string_view row) const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<Cell>> {
    PERCOLATOR_ASSIGN_OR_RETURN(
        std::vector<Row> rows,
        engine_->env.store->Read({{std::string(table),
                                   std::string(row),
                                   {{Family::kData}, {Family::kLock}, {Family::kWrite}, {Family::kNotify}}}}));
    std::vector<Cell> cells = std::move(rows.front().cells);
    // Within a family they come by column; the sort keeps that order within a column.
    std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.column < b.column; });
    return cells;
  });
}

absl::StatusOr<std::vector<LockInfo>> Inspector::ListLocks(std::string_view table, size_t limit) const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<LockInfo>> {
    Environment& env = engine_->env;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesToList(env, table));
    std::vector<FoundLock> found;
    for (const std::string& name : tables) {
      if (found.size() >= limit) break;
      const absl::Status read =
          ForEachPageOfLocks(env, name, [&](std::vector<FoundLock> locks) -> absl::StatusOr<bool> {
            for (FoundLock& lock : locks) {
              if (found.size() < limit) found.push_back(std::move(lock));
            }
            return found.size() < limit;
          });
      if (!read.ok() && !WasDropped(read, table)) return read;
    }
    return Look(env, found);
  });
}

absl::StatusOr<Inspector::ResolvedLocks> Inspector::ResolveLocks(std::string_view table) const {
  return engine_->InCall([&]() -> absl::StatusOr<Inspector::ResolvedLocks> {
    Environment& env = engine_->env;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesToList(env, table));
    ResolvedLocks counts;
    for (const std::string& name : tables) {
      const absl::Status settled =
          ForEachPageOfLocks(env, name, [&](const std::vector<FoundLock>& locks) -> absl::StatusOr<bool> {
            PERCOLATOR_RETURN_IF_ERROR(Settle(env, locks, &counts));
            return true;
          });
      if (!settled.ok() && !WasDropped(settled, table)) return settled;
    }
    return counts;
  });
}

absl::StatusOr<std::vector<WaitingNotification>> Inspector::ListNotifications(std::string_view table,
                                                                              size_t limit) const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<WaitingNotification>> {
    Environment& env = engine_->env;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesToList(env, table));
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, DrawForCall(env));
    std::vector<WaitingNotification> waiting;
    for (const std::string& name : tables) {
      RowRange rows = RowRange::All();
      for (bool done = name == kSystemTable; !done && waiting.size() < limit;) {
        const absl::StatusOr<std::vector<FoundMark>> marks = ScanMarks(&env, name, &rows, kRowsAtOnce, &done);
        if (WasDropped(marks.status(), table)) break;
        if (!marks.ok()) return marks.status();
        for (const FoundMark& mark : *marks) {
          if (waiting.size() == limit) break;
          waiting.push_back({mark.cell, mark.timestamp, mark.pending, AgeOf(mark.timestamp, now)});
        }
      }
    }
    return waiting;
  });
}

absl::StatusOr<CheckCounts> Inspector::Check(std::string_view table, const std::function<void(const BadCell&)>& found,
                                             const std::function<void(const CheckCounts&)>& progress) const {
  const std::shared_ptr<Engine> engine = engine_;  // `found` and `progress` may destroy this handle
  return engine->InCall([&]() -> absl::StatusOr<CheckCounts> {
    const Engine::UserTask task(engine.get());  // they cannot close the cluster
    Environment& env = engine->env;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesToList(env, table));
    CheckCounts counts;
    for (const std::string& name : tables) {
      const absl::Status checked = CheckTable(env, name, found, progress, &counts);
      if (!checked.ok() && !WasDropped(checked, table)) return checked;
    }
    return counts;
  });
}

absl::StatusOr<bool> Inspector::EraseBadCell(const BadCell& bad) const {
  return engine_->InCall([&]() -> absl::StatusOr<bool> { return percolator::EraseBadCell(engine_->env, bad); });
}

absl::StatusOr<std::vector<Quarantined>> Inspector::ListQuarantine() const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<Quarantined>> { return ListQuarantined(engine_.get()); });
}

absl::Status Inspector::Replay(const Quarantined& entry) const {
  return engine_->InCall([&]() -> absl::Status { return ReplayQuarantined(engine_.get(), entry); });
}

absl::Status Inspector::Drop(const Quarantined& entry) const {
  return engine_->InCall([&]() -> absl::Status { return DropQuarantined(engine_.get(), entry); });
}

absl::StatusOr<Timestamp> Inspector::SafePoint() const {
  return engine_->InCall([&]() -> absl::StatusOr<Timestamp> { return engine_->env.store->SafePoint(); });
}

}  // namespace percolator
