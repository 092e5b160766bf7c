#include "src/txn/writes.h"

#include <utility>

#include "src/base/mutant.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

// Always, but for a mutant.
bool IsLocked(const Lock& lock) { return !(MutantOn(Mutant::kVerifyTakesNoLock) && lock.kind == WriteKind::kVerify); }

bool LeavesRecord(const Lock& lock) {
  if (MutantOn(Mutant::kVerifyLeavesNoTrace) && lock.kind == WriteKind::kVerify) return false;
  if (MutantOn(Mutant::kDeleteLeavesNoRecord) && lock.kind == WriteKind::kDelete) return false;
  return true;
}

// The exact lock of the transaction, and no other (T13).
TimestampRange ItsLock(Timestamp start_ts) {
  return MutantOn(Mutant::kResolveAnyLock) ? TimestampRange::All() : TimestampRange::Exactly(start_ts);
}

// The two functions below take what has a column and a lock: the writer's cells or a resolver's findings.

template <typename Cells>
Condition AllLocked(const Cells& cells, Timestamp start_ts) {
  Condition condition{Condition::Quantifier::kAll, {}};
  condition.cells.reserve(cells.size());
  for (const auto& cell : cells) {
    if (IsLocked(cell.lock)) condition.cells.push_back({Family::kLock, cell.column, ItsLock(start_ts)});
  }
  return condition;
}

template <typename Cells>
RowMutation Commit(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                   const Cells& cells) {
  RowMutation mutation{table, row, AllLocked(cells, start_ts), {}};
  mutation.mutations.reserve(2 * cells.size());
  for (const auto& cell : cells) {
    if (!IsLocked(cell.lock)) continue;
    mutation.mutations.push_back(Mutation::Erase(Family::kLock, cell.column, ItsLock(start_ts)));
    if (!LeavesRecord(cell.lock)) continue;
    mutation.mutations.push_back(
        Mutation::Set(Family::kWrite, cell.column, commit_ts, EncodeRecordOf(cell.lock, start_ts)));
  }
  return mutation;
}

template <typename Cells>
RowMutation RollBack(const std::string& table, const std::string& row, Timestamp start_ts, const Cells& cells) {
  RowMutation mutation{table, row, AllLocked(cells, start_ts), {}};
  for (const auto& cell : cells) {
    mutation.mutations.push_back(Mutation::Erase(Family::kLock, cell.column, ItsLock(start_ts)));
    if (HasDataCell(cell.lock)) {
      mutation.mutations.push_back(Mutation::Erase(Family::kData, cell.column, TimestampRange::Exactly(start_ts)));
    }
  }
  if (!MutantOn(Mutant::kNoRollbackMarker)) {
    mutation.mutations.push_back(
        Mutation::Set(Family::kWrite, RollbackColumn(), start_ts,
                      EncodeWriteRecord({.kind = WriteKind::kRollback, .start_ts = start_ts})));
  }
  return mutation;
}

}  // namespace

Condition MayWrite(const RowWrites& row, Timestamp start_ts) {
  Condition condition{Condition::Quantifier::kNone, {}};
  condition.cells.reserve(2 * row.cells.size() + 1);
  for (const CellWrite& cell : row.cells) {
    if (!IsLocked(cell.lock)) continue;
    if (!MutantOn(Mutant::kNoLockCheck)) {
      condition.cells.push_back({Family::kLock, cell.column, TimestampRange::All()});
    }
    if (!MutantOn(Mutant::kNoWriteCheck)) {
      condition.cells.push_back({Family::kWrite, cell.column, TimestampRange::From(start_ts)});
    }
  }
  if (!MutantOn(Mutant::kNoMarkerCheck)) {
    condition.cells.push_back({Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)});
  }
  return condition;
}

RowMutation PrewriteRow(const RowWrites& row, Timestamp start_ts) {
  RowMutation mutation{row.table, row.row, MayWrite(row, start_ts), {}};
  for (const CellWrite& cell : row.cells) {
    if (!IsLocked(cell.lock)) continue;
    if (HasDataCell(cell.lock)) {
      mutation.mutations.push_back(Mutation::Set(Family::kData, cell.column, start_ts, cell.long_value));
    }
    mutation.mutations.push_back(Mutation::Set(Family::kLock, cell.column, start_ts, EncodeLock(cell.lock)));
  }
  return mutation;
}

RowMutation CommitRow(const RowWrites& row, Timestamp start_ts, Timestamp commit_ts) {
  return Commit(row.table, row.row, start_ts, commit_ts, row.cells);
}

RowMutation CommitRow(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                      const std::vector<HeldLock>& locks) {
  return Commit(table, row, start_ts, commit_ts, locks);
}

RowMutation RollBackRow(const RowWrites& row, Timestamp start_ts) {
  return RollBack(row.table, row.row, start_ts, row.cells);
}

RowMutation RollBackRow(const std::string& table, const std::string& row, Timestamp start_ts,
                        const std::vector<HeldLock>& locks) {
  return RollBack(table, row, start_ts, locks);
}

}  // namespace percolator
