#include "src/txn/writes.h"

#include <map>
#include <utility>

#include "src/base/mutant.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"

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

Mutation EraseMarks(const MarkRemoval& removal) {
  const TimestampRange range =
      MutantOn(Mutant::kRemoveUnbounded) ? TimestampRange::All() : TimestampRange::UpTo(removal.until);
  return Mutation::Erase(Family::kNotify, removal.cell.column, range);
}

// Adds effects to the mutations of their rows, or as new ones without a condition.
class RowMutations {
 public:
  explicit RowMutations(std::vector<RowMutation>* rows) : rows_(*rows) {
    for (size_t i = 0; i < rows_.size(); ++i) index_.emplace(std::pair(rows_[i].table, rows_[i].row), i);
  }

  void Add(const CellName& cell, Mutation effect) {
    const auto [it, is_new] = index_.emplace(std::pair(cell.table, cell.row), rows_.size());
    if (is_new) rows_.push_back({cell.table, cell.row, {}, {}});
    rows_[it->second].mutations.push_back(std::move(effect));
  }

 private:
  std::vector<RowMutation>& rows_;
  std::map<std::pair<std::string, std::string>, size_t> index_;  // by table and row
};

// The final mark, in place of the pending one.
void FinishMark(const std::string& column, const Lock& lock, Timestamp start_ts, Timestamp commit_ts,
                std::vector<Mutation>* mutations) {
  mutations->push_back(Mutation::Erase(Family::kNotify, PendingColumn(column), TimestampRange::Exactly(start_ts)));
  if (MutantOn(Mutant::kMarkOnlyAtPrewrite)) return;
  const Timestamp at = MutantOn(Mutant::kMarkAtStart) ? start_ts : commit_ts;
  mutations->push_back(Mutation::Set(Family::kNotify, column, at, EncodeMark({lock.depth})));
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
    if (cell.lock.observed) FinishMark(cell.column, cell.lock, start_ts, commit_ts, &mutation.mutations);
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
    if (cell.lock.observed && !MutantOn(Mutant::kRollbackLeavesMark)) {
      mutation.mutations.push_back(
          Mutation::Erase(Family::kNotify, PendingColumn(cell.column), TimestampRange::Exactly(start_ts)));
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
  // The marker first: then a row with one cell ends with the column that its mutations begin with, and the store need not
  // make its key again.
  if (!MutantOn(Mutant::kNoMarkerCheck)) {
    condition.cells.push_back({Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)});
  }
  for (const CellWrite& cell : row.cells) {
    if (!IsLocked(cell.lock)) continue;
    if (!MutantOn(Mutant::kNoWriteCheck)) {
      condition.cells.push_back({Family::kWrite, cell.column, TimestampRange::From(start_ts)});
    }
    if (!MutantOn(Mutant::kNoLockCheck)) {
      condition.cells.push_back({Family::kLock, cell.column, TimestampRange::All()});
    }
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
    if (!cell.lock.observed || MutantOn(Mutant::kMarkOnlyAtCommit)) continue;
    const std::string column = MutantOn(Mutant::kMarkOnlyAtPrewrite) ? cell.column : PendingColumn(cell.column);
    mutation.mutations.push_back(Mutation::Set(Family::kNotify, column, start_ts, EncodeMark({cell.lock.depth})));
  }
  return mutation;
}

RowMutation CommitRow(const RowWrites& row, Timestamp start_ts, Timestamp commit_ts) {
  return Commit(row.table, row.row, start_ts, commit_ts, row.cells);
}

RowMutation CommitRow(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                      const std::vector<HeldLock>& locks) {
  if (!MutantOn(Mutant::kResolverForgetsMark)) return Commit(table, row, start_ts, commit_ts, locks);
  RowMutation mutation = Commit(table, row, start_ts, commit_ts, locks);
  std::erase_if(mutation.mutations,
                [](const Mutation& m) { return m.family == Family::kNotify && m.kind == Mutation::Kind::kSet; });
  return mutation;
}

bool RemovesWithPrimary(const Writes& writes) {
  return writes.removal.has_value() && writes.removal->cell.table == writes.rows[0].table &&
         writes.removal->cell.row == writes.rows[0].row;
}

RowMutation CommitPrimaryRow(const Writes& writes, Timestamp commit_ts) {
  const RowWrites& row = writes.rows[0];
  RowMutation mutation = CommitRow(row, writes.start_ts, commit_ts);
  if (RemovesWithPrimary(writes)) mutation.mutations.push_back(EraseMarks(*writes.removal));
  return mutation;
}

void AddMarks(const Writes& writes, Timestamp commit_ts, std::vector<RowMutation>* rows) {
  if (writes.notified.empty()) return;
  const Timestamp at = MutantOn(Mutant::kWeakMarkAtStart) ? writes.start_ts : commit_ts;
  RowMutations mutations(rows);
  for (const CellName& cell : writes.notified) {
    const uint32_t depth = cell == writes.continued ? writes.depth - 1 : writes.depth;
    mutations.Add(cell, Mutation::Set(Family::kNotify, cell.column, at, EncodeMark({depth})));
  }
}

void AddRemoval(const Writes& writes, std::vector<RowMutation>* rows) {
  if (writes.removal.has_value()) RowMutations(rows).Add(writes.removal->cell, EraseMarks(*writes.removal));
}

RowMutation RollBackRow(const RowWrites& row, Timestamp start_ts) {
  return RollBack(row.table, row.row, start_ts, row.cells);
}

RowMutation RollBackRow(const std::string& table, const std::string& row, Timestamp start_ts,
                        const std::vector<HeldLock>& locks) {
  return RollBack(table, row, start_ts, locks);
}

}  // namespace percolator
