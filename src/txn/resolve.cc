// SPDX-License-Identifier: Apache-2.0

#include "src/txn/resolve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/own_record.h"
#include "src/txn/record_coding.h"
#include "src/txn/writes.h"

namespace percolator {
namespace {

// What one consistent read of the primary's row finds.
struct PrimaryState {
  std::optional<Verdict> verdict;
  std::optional<Lock> lock;
  Timestamp newest_record;  // of the primary's column; zero if it has none since start_ts
};

absl::StatusOr<PrimaryState> ReadPrimary(Environment& env, const CellName& primary, Timestamp start_ts) {
  RowRead read{primary.table,
               primary.row,
               {{Family::kLock, primary.column, TimestampRange::Exactly(start_ts)},
                {Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)}}};
  SelectRecordsSince(primary.column, start_ts, &read.selectors);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Row> rows, env.store->Read({std::move(read)}));
  PrimaryState state;
  std::vector<const Cell*> records;
  for (const Cell& cell : rows.front().cells) {
    if (cell.family == Family::kLock) {
      absl::StatusOr<Lock> lock = DecodeLock(cell.value);
      if (!lock.ok()) return AtCell(lock.status(), primary.table, primary.row, cell);
      // A lock that names another primary is not the primary of this transaction.
      if (lock->primary.has_value()) {
        return AtCell(absl::DataLossError(StrCat("the primary of transaction ", start_ts.ToString(),
                                                 " has a lock that names another primary: ", ToString(*lock->primary))),
                      primary.table, primary.row, cell);
      }
      state.lock = *std::move(lock);
    } else if (cell.column == RollbackColumn() && primary.column != RollbackColumn()) {
      state.verdict = Verdict::RolledBack();
    } else {
      records.push_back(&cell);
    }
  }
  if (state.verdict.has_value() || records.empty()) return state;
  PERCOLATOR_ASSIGN_OR_RETURN(const RecordsSince since, FindRecordsSince(env, primary, start_ts, records));
  state.newest_record = records.front()->timestamp;
  if (since.own_commit_ts.has_value()) state.verdict = Verdict::Committed(*since.own_commit_ts);
  return state;
}

// Lock ages are measured by the oracle's clock alone: those of owner and reader may differ.
absl::StatusOr<bool> OwnerIsAlive(Environment& env, const Lock& lock) {
  const absl::StatusOr<bool> session_alive = env.coordinator->IsAlive(lock.session);
  if (session_alive.ok() && !*session_alive) return false;
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, env.oracle->GetTimestamp());
  const uint64_t lease = static_cast<uint64_t>(env.options.lock_lease.count());
  return now.value() <= lock.refreshed.value() + lease;
}

// The locks that the transaction holds in a row.
absl::StatusOr<std::vector<RowLock>> ReadLocks(Environment& env, const std::string& table, const std::string& row,
                                               Timestamp start_ts) {
  PERCOLATOR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      env.store->Read({{table, row, {{Family::kLock, std::nullopt, TimestampRange::Exactly(start_ts)}}}}));
  std::vector<RowLock> locks;
  for (const Cell& cell : rows.front().cells) {
    absl::StatusOr<Lock> lock = DecodeLock(cell.value);
    if (!lock.ok()) return AtCell(lock.status(), table, row, cell);
    locks.push_back({cell.column, *std::move(lock)});
  }
  return locks;
}

// Does what RollBackPrimary below does, for a primary that is locked.
absl::StatusOr<bool> RollBackLockedPrimary(Environment& env, const CellName& primary, Timestamp start_ts) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<RowLock> locks, ReadLocks(env, primary.table, primary.row, start_ts));
  const bool still_locked =
      std::any_of(locks.begin(), locks.end(), [&](const RowLock& held) { return held.column == primary.column; });
  if (!still_locked) return false;
  PERCOLATOR_ASSIGN_OR_RETURN(const auto result,
                              env.store->Mutate({BuildRollbackRow(primary.table, primary.row, start_ts, locks)})[0]);
  return result == MutateResult::kApplied;
}

// The same for a primary without a lock. Its prewrite and commit could both arrive between the read and this mutation;
// the condition finds that lock or newer record. (If the read found a newer record, the prewrite is refused forever.)
// Returns OutOfRange if the transaction started at or below the safe point. Its records may have been collected, so no marker
// may be left: it could contradict a verdict that others have acted on (T1).
absl::StatusOr<bool> MarkMissingPrimary(Environment& env, const CellName& primary, Timestamp start_ts,
                                        Timestamp newest_record) {
  RowMutation mutation = BuildRollbackRow(primary.table, primary.row, start_ts, {});
  mutation.condition = {
      Condition::Quantifier::kNone,
      {{Family::kLock, primary.column, TimestampRange::Exactly(start_ts)},
       {Family::kWrite, primary.column, TimestampRange::From(std::max(newest_record, start_ts).Next())}}};
  // Sets and removes a lock at once: the store refuses that below the safe point, in the same atomic step (G4).
  mutation.mutations.push_back(Mutation::Set(Family::kLock, primary.column, start_ts, EncodeLock({})));
  mutation.mutations.push_back(Mutation::Erase(Family::kLock, primary.column, TimestampRange::Exactly(start_ts)));
  PERCOLATOR_ASSIGN_OR_RETURN(const auto result, env.store->Mutate({std::move(mutation)})[0]);
  return result == MutateResult::kApplied;
}

// Returns the mutation that carries the verdict out in one row, for the locks that the transaction holds there.
absl::StatusOr<std::optional<RowMutation>> SettleRow(Environment& env, const CellName& cell, Timestamp start_ts,
                                                     const Verdict& verdict) {
  PERCOLATOR_DCHECK(verdict.kind != Verdict::Kind::kPending);  // T13
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<RowLock> locks, ReadLocks(env, cell.table, cell.row, start_ts));
  if (locks.empty()) return std::nullopt;  // another transaction has resolved them
  if (verdict.kind == Verdict::Kind::kRolledBack) {
    Counters::Add(&env.counters.rolled_back, locks.size());
    return BuildRollbackRow(cell.table, cell.row, start_ts, locks);
  }
  Counters::Add(&env.counters.rolled_forward, locks.size());
  return BuildCommitRow(cell.table, cell.row, start_ts, verdict.commit_ts, locks);
}

// Returns whether the primary is now rolled back. If not, it has changed since `state` was read: read it again.
absl::StatusOr<bool> RollBackPrimary(Environment& env, const CellName& primary, Timestamp start_ts,
                                     const PrimaryState& state) {
  PERCOLATOR_DCHECK(!state.verdict.has_value());  // T1
  return state.lock.has_value() ? RollBackLockedPrimary(env, primary, start_ts)
                                : MarkMissingPrimary(env, primary, start_ts, state.newest_record);
}

// Sets `remember` to whether the verdict may be cached.
absl::StatusOr<Verdict> DecideAtPrimary(Environment& env, const FoundLock& met, LiveLocks live_locks, bool* remember) {
  *remember = true;
  for (;;) {
    const absl::StatusOr<PrimaryState> state = ReadPrimary(env, met.primary(), met.start_ts);
    if (absl::IsNotFound(state.status())) return Verdict::RolledBack();  // its table is dropped: see Cluster::DropTable
    if (!state.ok()) return state.status();
    if (state->verdict.has_value()) return *state->verdict;
    if (live_locks == LiveLocks::kKeep) {
      // Only the primary's own lock is refreshed. Without it, the lock that was found is the only sign of life.
      PERCOLATOR_ASSIGN_OR_RETURN(const bool alive,
                                  OwnerIsAlive(env, state->lock.has_value() ? *state->lock : met.lock));
      if (alive) return Verdict::Pending();
    }
    const absl::StatusOr<bool> rolled_back = RollBackPrimary(env, met.primary(), met.start_ts, *state);
    if (absl::IsNotFound(rolled_back.status())) continue;  // its table was dropped since the read
    if (absl::IsOutOfRange(rolled_back.status())) {
      // The transaction is now at or below the safe point. Its primary may have been locked between the read and the
      // time when the safe point passed it; from now on it cannot be (G4). So read once more.
      const absl::StatusOr<PrimaryState> last = ReadPrimary(env, met.primary(), met.start_ts);
      if (absl::IsNotFound(last.status())) continue;
      if (!last.ok()) return last.status();
      if (last->verdict.has_value() || last->lock.has_value()) continue;
      // If the lock that was found is still there, no verdict was collected, because locks are resolved before (G2): so
      // there is none, and never will be. If it is gone, nothing is left to do, whatever the verdict was.
      *remember = false;
      return Verdict::RolledBack();
    }
    if (!rolled_back.ok()) return rolled_back.status();
    if (*rolled_back) return Verdict::RolledBack();
  }
}

}  // namespace

absl::StatusOr<Verdict> Decide(Environment& env, const FoundLock& met, LiveLocks live_locks) {
  if (const std::optional<Verdict> known = env.verdicts.Find(met.start_ts)) return *known;
  bool remember = false;
  PERCOLATOR_ASSIGN_OR_RETURN(const Verdict verdict, DecideAtPrimary(env, met, live_locks, &remember));
  PERCOLATOR_DCHECK(live_locks == LiveLocks::kKeep || verdict.kind != Verdict::Kind::kPending);
  if (remember && verdict.kind != Verdict::Kind::kPending) env.verdicts.Remember(met.start_ts, verdict);
  return verdict;
}

absl::StatusOr<LockStatus> InspectLock(Environment& env, const FoundLock& met) {
  const absl::StatusOr<PrimaryState> state = ReadPrimary(env, met.primary(), met.start_ts);
  if (absl::IsNotFound(state.status())) return LockStatus{.verdict = Verdict::RolledBack()};
  if (!state.ok()) return state.status();
  if (state->verdict.has_value()) return LockStatus{.verdict = state->verdict};
  PERCOLATOR_ASSIGN_OR_RETURN(const bool alive, OwnerIsAlive(env, state->lock.has_value() ? *state->lock : met.lock));
  return LockStatus{.verdict = std::nullopt, .alive = alive};
}

// G7: garbage collection removes verdicts that no lock needs any more (G2). The owner has no lock to show, so at or
// below the safe point a missing verdict proves nothing.
absl::StatusOr<Verdict> DecideOwn(Environment& env, const CellName& primary, Timestamp start_ts) {
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(const PrimaryState state, ReadPrimary(env, primary, start_ts));
    if (state.verdict.has_value()) return *state.verdict;
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp safe_point, env.store->SafePointOfReads());
    if (!state.lock.has_value() && start_ts <= safe_point) {
      return absl::OutOfRangeError(StrCat("transaction ", start_ts.ToString(), " (primary ", ToString(primary),
                                          ") is older than the safe point ", safe_point.ToString(),
                                          ": garbage collection may have removed its verdict"));
    }
    PERCOLATOR_ASSIGN_OR_RETURN(const bool rolled_back, RollBackPrimary(env, primary, start_ts, state));
    if (rolled_back) return Verdict::RolledBack();
  }
}

absl::StatusOr<bool> ResolveLocks(Environment& env, const std::vector<FoundLock>& locks, LiveLocks live_locks) {
  Counters::Add(&env.counters.foreign_locks_found, locks.size());
  std::map<Timestamp, Verdict> verdicts;
  for (const FoundLock& met : locks) {
    if (verdicts.contains(met.start_ts)) continue;
    PERCOLATOR_ASSIGN_OR_RETURN(const Verdict verdict, Decide(env, met, live_locks));
    verdicts[met.start_ts] = verdict;
  }
  absl::StatusOr<bool> all = true;
  std::set<std::tuple<std::string_view, std::string_view, Timestamp>> settled;
  std::vector<RowMutation> mutations;
  for (const FoundLock& met : locks) {
    const Verdict& verdict = verdicts[met.start_ts];
    if (verdict.kind == Verdict::Kind::kPending) {
      all = false;
      continue;
    }
    if (!settled.emplace(met.cell.table, met.cell.row, met.start_ts).second) continue;
    absl::StatusOr<std::optional<RowMutation>> mutation = SettleRow(env, met.cell, met.start_ts, verdict);
    if (!mutation.ok()) {
      // The mutations made so far are still applied, so that the next attempt has less to do.
      all = mutation.status();
      break;
    }
    if (mutation->has_value()) mutations.push_back(**std::move(mutation));
  }
  if (mutations.empty()) return all;
  for (const auto& result : env.store->Mutate(mutations)) {
    // A failed condition is as good: another client has resolved the lock.
    if (!result.ok()) return result.status();
  }
  return all;
}

}  // namespace percolator
