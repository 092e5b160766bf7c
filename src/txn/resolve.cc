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
#include "src/txn/record_coding.h"
#include "src/txn/writes.h"

namespace percolator {
namespace {

// What the primary's row says, in one consistent view of it.
struct PrimaryState {
  std::optional<Verdict> verdict;
  std::optional<Lock> lock;
  Timestamp newest_record;  // of the primary's column; zero if there is none since start_ts
};

absl::StatusOr<PrimaryState> ReadPrimary(Environment& env, const CellName& primary, Timestamp start_ts) {
  const absl::StatusOr<std::vector<Row>> rows =
      env.store->Read({{primary.table,
                        primary.row,
                        {{Family::kLock, primary.column, TimestampRange::Exactly(start_ts)},
                         {Family::kWrite, primary.column, TimestampRange::From(start_ts)},
                         {Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)}}}});
  if (!rows.ok()) return rows.status();
  PrimaryState state;
  for (const Cell& cell : rows->front().cells) {
    if (cell.family == Family::kLock) {
      absl::StatusOr<Lock> lock = DecodeLock(cell.value);
      if (!lock.ok()) return AtCell(lock.status(), primary.table, primary.row, cell);
      // A lock that points elsewhere is not this transaction's primary, whatever sent us here.
      if (lock->primary.has_value()) {
        return AtCell(absl::DataLossError("the primary of a lock names another primary"), primary.table, primary.row,
                      cell);
      }
      state.lock = *std::move(lock);
    } else if (cell.column == RollbackColumn() && primary.column != RollbackColumn()) {
      state.verdict = Verdict::RolledBack();
    } else {
      const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
      if (!record.ok()) return AtCell(record.status(), primary.table, primary.row, cell);
      state.newest_record = std::max(state.newest_record, cell.timestamp);
      if (record->start_ts == start_ts) state.verdict = Verdict::Committed(cell.timestamp);
    }
  }
  return state;
}

// Lock ages are told by one clock, the oracle's: those of owner and reader may differ.
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
  const absl::StatusOr<std::vector<Row>> rows =
      env.store->Read({{table, row, {{Family::kLock, std::nullopt, TimestampRange::Exactly(start_ts)}}}});
  if (!rows.ok()) return rows.status();
  std::vector<RowLock> locks;
  for (const Cell& cell : rows->front().cells) {
    absl::StatusOr<Lock> lock = DecodeLock(cell.value);
    if (!lock.ok()) return AtCell(lock.status(), table, row, cell);
    locks.push_back({cell.column, *std::move(lock)});
  }
  return locks;
}

// As RollBackPrimary below, where the primary is locked.
absl::StatusOr<bool> RollBackLockedPrimary(Environment& env, const CellName& primary, Timestamp start_ts) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<RowLock> locks, ReadLocks(env, primary.table, primary.row, start_ts));
  const bool still_locked =
      std::any_of(locks.begin(), locks.end(), [&](const RowLock& held) { return held.column == primary.column; });
  if (!still_locked) return false;
  PERCOLATOR_ASSIGN_OR_RETURN(const auto result,
                              env.store->Mutate({BuildRollbackRow(primary.table, primary.row, start_ts, locks)})[0]);
  return result == MutateResult::kApplied;
}

// The same where it has no lock. Prewrite and commit of the primary could both arrive between our look and this mutation;
// the lock or the newer record would tell. (If there was a newer record when we looked, its prewrite is refused forever.)
// kOutOfRange: the transaction started at or below the safe point. What is missing there may have been collected, so no
// marker may be left: it could contradict a verdict that others have acted on (T1).
absl::StatusOr<bool> MarkMissingPrimary(Environment& env, const CellName& primary, Timestamp start_ts,
                                        Timestamp newest_record) {
  RowMutation mutation = BuildRollbackRow(primary.table, primary.row, start_ts, {});
  mutation.condition = {
      Condition::Quantifier::kNone,
      {{Family::kLock, primary.column, TimestampRange::Exactly(start_ts)},
       {Family::kWrite, primary.column, TimestampRange::From(std::max(newest_record, start_ts).Next())}}};
  // A lock that is set and removed at once: the store refuses it below the safe point, in the same atomic step (G4).
  mutation.mutations.push_back(Mutation::Set(Family::kLock, primary.column, start_ts, EncodeLock({})));
  mutation.mutations.push_back(Mutation::Erase(Family::kLock, primary.column, TimestampRange::Exactly(start_ts)));
  PERCOLATOR_ASSIGN_OR_RETURN(const auto result, env.store->Mutate({std::move(mutation)})[0]);
  return result == MutateResult::kApplied;
}

// The mutations that carry verdicts out in one row, for the locks that a transaction holds there.
absl::StatusOr<std::optional<RowMutation>> SettleRow(Environment& env, const CellName& cell, Timestamp start_ts,
                                                     const Verdict& verdict) {
  PERCOLATOR_DCHECK(verdict.kind != Verdict::Kind::kPending);  // T13
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<RowLock> locks, ReadLocks(env, cell.table, cell.row, start_ts));
  if (locks.empty()) return std::nullopt;  // somebody else was here
  if (verdict.kind == Verdict::Kind::kRolledBack) {
    Counters::Add(&env.counters.rolled_back, locks.size());
    return BuildRollbackRow(cell.table, cell.row, start_ts, locks);
  }
  Counters::Add(&env.counters.rolled_forward, locks.size());
  return BuildCommitRow(cell.table, cell.row, start_ts, verdict.commit_ts, locks);
}

// True: the primary is rolled back now. False: it has changed since `state` was read, look again.
absl::StatusOr<bool> RollBackPrimary(Environment& env, const CellName& primary, Timestamp start_ts,
                                     const PrimaryState& state) {
  PERCOLATOR_DCHECK(!state.verdict.has_value());  // T1
  return state.lock.has_value() ? RollBackLockedPrimary(env, primary, start_ts)
                                : MarkMissingPrimary(env, primary, start_ts, state.newest_record);
}

// Sets `remember` to whether the verdict may be remembered.
absl::StatusOr<Verdict> DecideAtPrimary(Environment& env, const FoundLock& met, LiveLocks live_locks, bool* remember) {
  *remember = true;
  for (;;) {
    const absl::StatusOr<PrimaryState> state = ReadPrimary(env, met.primary(), met.start_ts);
    if (absl::IsNotFound(state.status())) return Verdict::RolledBack();  // its table is dropped: see Cluster::DropTable
    if (!state.ok()) return state.status();
    if (state->verdict.has_value()) return *state->verdict;
    if (live_locks == LiveLocks::kKeep) {
      // Only the primary's own lock is refreshed. Without it, the lock that was met is the only sign of life.
      PERCOLATOR_ASSIGN_OR_RETURN(const bool alive,
                                  OwnerIsAlive(env, state->lock.has_value() ? *state->lock : met.lock));
      if (alive) return Verdict::Pending();
    }
    const absl::StatusOr<bool> rolled_back = RollBackPrimary(env, met.primary(), met.start_ts, *state);
    if (absl::IsNotFound(rolled_back.status())) continue;  // its table was dropped since we looked
    if (absl::IsOutOfRange(rolled_back.status())) {
      // It is at or below the safe point now. Its primary may have been locked since we looked, before the safe point passed
      // it; from now on it can't be (G4). So look once more.
      const absl::StatusOr<PrimaryState> last = ReadPrimary(env, met.primary(), met.start_ts);
      if (absl::IsNotFound(last.status())) continue;
      if (!last.ok()) return last.status();
      if (last->verdict.has_value() || last->lock.has_value()) continue;
      // If the lock that was met is still there, no verdict was collected, because locks are resolved before (G2): so there
      // is none, and never will be. If it is gone, nothing is left to be done, whatever the verdict was.
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

// G7: garbage collection takes verdicts that no lock needs any more (G2). The owner has no lock to show, so at or below the safe
// point a missing verdict proves nothing.
absl::StatusOr<Verdict> DecideOwn(Environment& env, const CellName& primary, Timestamp start_ts) {
  for (;;) {
    PERCOLATOR_ASSIGN_OR_RETURN(const PrimaryState state, ReadPrimary(env, primary, start_ts));
    if (state.verdict.has_value()) return *state.verdict;
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp safe_point, env.store->SafePointOfReads());
    if (!state.lock.has_value() && start_ts <= safe_point) {
      return absl::OutOfRangeError(
          StrCat("the transaction that started at ", start_ts.ToString(),
                 " is older than the safe point: garbage collection may have taken its verdict"));
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
      // What was read so far is carried out: who tries again has less to do, however many locks there are.
      all = mutation.status();
      break;
    }
    if (mutation->has_value()) mutations.push_back(**std::move(mutation));
  }
  if (mutations.empty()) return all;
  for (const auto& result : env.store->Mutate(mutations)) {
    // A condition that failed is as good: the lock has gone another way.
    if (!result.ok()) return result.status();
  }
  return all;
}

}  // namespace percolator
