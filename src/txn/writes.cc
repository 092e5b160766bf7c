// SPDX-License-Identifier: Apache-2.0

#include "src/txn/writes.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"

namespace percolator {
namespace {

Mutation EraseMarks(const MarkRemoval& removal) {
  return Mutation::Erase(Family::kNotify, removal.cell.column, TimestampRange::UpTo(removal.until));
}

// Adds effects to the mutations of their rows, or as new mutations without a condition.
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

// Replaces the pending mark by the final one.
void FinishMark(const std::string& column, const Lock& lock, Timestamp start_ts, Timestamp commit_ts,
                std::vector<Mutation>* mutations) {
  mutations->push_back(Mutation::Erase(Family::kNotify, PendingColumn(column), TimestampRange::Exactly(start_ts)));
  mutations->push_back(Mutation::Set(Family::kNotify, column, commit_ts, EncodeMark({lock.depth})));
}

// The functions below accept anything with a column and a lock: the writer's cells, or the locks that a resolver found.

// T13: names the exact locks of the transaction, and no others.
template <typename Cells>
Condition AllLocked(const Cells& cells, Timestamp start_ts) {
  Condition condition{Condition::Quantifier::kAll, {}};
  condition.cells.reserve(cells.size());
  for (const auto& cell : cells) {
    condition.cells.push_back({Family::kLock, cell.column, TimestampRange::Exactly(start_ts)});
  }
  return condition;
}

template <typename Cells>
RowMutation BuildCommit(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                        const Cells& cells) {
  PERCOLATOR_DCHECK(!cells.empty());  // T13: a condition without cells always holds
  RowMutation mutation{table, row, AllLocked(cells, start_ts), {}};
  mutation.mutations.reserve(2 * cells.size());
  for (const auto& cell : cells) {
    mutation.mutations.push_back(Mutation::Erase(Family::kLock, cell.column, TimestampRange::Exactly(start_ts)));
    if (cell.lock.observed) FinishMark(cell.column, cell.lock, start_ts, commit_ts, &mutation.mutations);
    mutation.mutations.push_back(
        Mutation::Set(Family::kWrite, cell.column, commit_ts, EncodeRecordOf(cell.lock, start_ts)));
  }
  return mutation;
}

template <typename Cells>
RowMutation BuildRollback(const std::string& table, const std::string& row, Timestamp start_ts, const Cells& cells) {
  RowMutation mutation{table, row, AllLocked(cells, start_ts), {}};
  for (const auto& cell : cells) {
    mutation.mutations.push_back(Mutation::Erase(Family::kLock, cell.column, TimestampRange::Exactly(start_ts)));
    if (HasDataCell(cell.lock)) {
      mutation.mutations.push_back(Mutation::Erase(Family::kData, cell.column, TimestampRange::Exactly(start_ts)));
    }
    if (cell.lock.observed) {
      mutation.mutations.push_back(
          Mutation::Erase(Family::kNotify, PendingColumn(cell.column), TimestampRange::Exactly(start_ts)));
    }
  }
  mutation.mutations.push_back(Mutation::Set(Family::kWrite, RollbackColumn(), start_ts,
                                             EncodeWriteRecord({.kind = WriteKind::kRollback, .start_ts = start_ts})));
  return mutation;
}

}  // namespace

bool Writes::consistent() const {
  if (rows.empty()) return false;
  std::set<CellName> cells;
  std::set<CellName> primaries;
  std::set<std::pair<std::string_view, std::string_view>> row_names;
  for (const RowWrites& row : rows) {
    if (row.cells.empty() || !row_names.emplace(row.table, row.row).second) return false;
    for (const CellWrite& cell : row.cells) {
      const CellName name{row.table, row.row, cell.column};
      if (!cells.insert(name).second) return false;
      primaries.insert(cell.lock.primary.value_or(name));
    }
  }
  return primaries.size() == 1;
}

Condition MayWrite(const RowWrites& row, Timestamp start_ts) {
  PERCOLATOR_DCHECK(!row.cells.empty());
  Condition condition{Condition::Quantifier::kNone, {}};
  condition.cells.reserve(2 * row.cells.size() + 1);
  // The marker first: then a row with one cell ends with the column that its mutations begin with, and the store does
  // not have to make its key again.
  condition.cells.push_back({Family::kWrite, RollbackColumn(), TimestampRange::Exactly(start_ts)});
  for (const CellWrite& cell : row.cells) {
    condition.cells.push_back({Family::kWrite, cell.column, TimestampRange::From(start_ts)});
    condition.cells.push_back({Family::kLock, cell.column, TimestampRange::All()});
  }
  return condition;
}

RowMutation BuildPrewriteRow(const RowWrites& row, Timestamp start_ts) {
  RowMutation mutation{row.table, row.row, MayWrite(row, start_ts), {}};
  for (const CellWrite& cell : row.cells) {
    if (HasDataCell(cell.lock)) {
      mutation.mutations.push_back(Mutation::Set(Family::kData, cell.column, start_ts, cell.long_value));
    }
    mutation.mutations.push_back(Mutation::Set(Family::kLock, cell.column, start_ts, EncodeLock(cell.lock)));
    if (!cell.lock.observed) continue;
    mutation.mutations.push_back(
        Mutation::Set(Family::kNotify, PendingColumn(cell.column), start_ts, EncodeMark({cell.lock.depth})));
  }
  return mutation;
}

RowMutation BuildCommitRow(const RowWrites& row, Timestamp start_ts, Timestamp commit_ts) {
  PERCOLATOR_DCHECK(start_ts < commit_ts);  // T6
  return BuildCommit(row.table, row.row, start_ts, commit_ts, row.cells);
}

RowMutation BuildCommitRow(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                           const std::vector<RowLock>& locks) {
  return BuildCommit(table, row, start_ts, commit_ts, locks);
}

bool RemovesWithPrimary(const Writes& writes) {
  return writes.removal.has_value() && writes.removal->cell.table == writes.rows[0].table &&
         writes.removal->cell.row == writes.rows[0].row;
}

RowMutation BuildPrimaryCommitRow(const Writes& writes, Timestamp commit_ts) {
  PERCOLATOR_DCHECK(writes.has_primary());
  const RowWrites& row = writes.rows[0];
  RowMutation mutation = BuildCommitRow(row, writes.start_ts, commit_ts);
  if (RemovesWithPrimary(writes)) mutation.mutations.push_back(EraseMarks(*writes.removal));
  return mutation;
}

std::vector<RowMutation> BuildSecondaryCommitRows(const Writes& writes, Timestamp commit_ts) {
  std::vector<RowMutation> mutations;
  mutations.reserve(writes.rows.size() - 1);
  for (size_t i = 1; i < writes.rows.size(); ++i) {
    mutations.push_back(BuildCommitRow(writes.rows[i], writes.start_ts, commit_ts));
  }
  return mutations;
}

void AddMarks(const Writes& writes, Timestamp commit_ts, std::vector<RowMutation>* rows) {
  if (writes.notified.empty()) return;
  RowMutations mutations(rows);
  for (const CellName& cell : writes.notified) {
    const uint32_t depth = cell == writes.continued ? writes.depth - 1 : writes.depth;
    mutations.Add(cell, Mutation::Set(Family::kNotify, cell.column, commit_ts, EncodeMark({depth})));
  }
}

void AddRemoval(const Writes& writes, std::vector<RowMutation>* rows) {
  if (writes.removal.has_value()) RowMutations(rows).Add(writes.removal->cell, EraseMarks(*writes.removal));
}

RowMutation BuildRollbackRow(const RowWrites& row, Timestamp start_ts) {
  PERCOLATOR_DCHECK(!row.cells.empty());
  return BuildRollback(row.table, row.row, start_ts, row.cells);
}

RowMutation BuildRollbackRow(const std::string& table, const std::string& row, Timestamp start_ts,
                             const std::vector<RowLock>& locks) {
  return BuildRollback(table, row, start_ts, locks);
}

}  // namespace percolator
