// SPDX-License-Identifier: Apache-2.0

// The writes of a transaction, and the row changes that the protocol consists of.
//
// A row of a transaction goes through these states, each arrow one conditional mutation of that row (T15):
//
//                  BuildPrewriteRow              BuildCommitRow
//     untouched --------------------------> locked --------------> committed
//         |                                   |
//         | BuildRollbackRow (a marker only)  | BuildRollbackRow
//         +--------> rolled back <------------+
//
// Writer and resolver build the last two with the same functions, so the client that finishes a transaction leaves the
// same bytes as its owner would, marks for observers included (N8: see mark.h). All are idempotent (T11): repeated,
// late or out of order, they find their condition false.

#ifndef PERCOLATOR_TXN_WRITES_H_
#define PERCOLATOR_TXN_WRITES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "percolator/spi/store.h"
#include "src/txn/lock.h"

namespace percolator {

struct CellWrite {
  std::string column;
  Lock lock;               // as it will be written; has the value if that is short
  std::string long_value;  // otherwise it is here, and goes to the family data
};

struct RowWrites {
  std::string table;
  std::string row;
  std::vector<CellWrite> cells;
};

// The marks of a cell up to a timestamp. An observer's transaction removes them.
struct MarkRemoval {
  CellName cell;
  Timestamp until;
};

// All rows of one transaction. The first cell of the first row is the primary.
struct Writes {
  Timestamp start_ts;
  std::vector<RowWrites> rows;
  std::vector<CellName> notified;  // notify-only cells that get a mark at the commit timestamp (N9)
  uint32_t depth = 0;              // of the marks of `notified`
  // The cell of `notified` whose own observer continues later: its mark is no deeper than before.
  std::optional<CellName> continued;
  std::optional<MarkRemoval> removal;  // N4

  // Returns whether all locks name the same primary (T1), and no cell occurs twice (T4). True also of a part of a
  // transaction's rows.
  bool consistent() const;
  // Returns whether it is consistent and the primary is the first cell of the first row.
  bool has_primary() const { return consistent() && !rows[0].cells[0].lock.primary.has_value(); }

  CellName primary() const { return {rows[0].table, rows[0].row, rows[0].cells[0].column}; }
};

// A put whose value is in the family data, at start_ts.
inline bool HasDataCell(const Lock& lock) { return lock.kind == WriteKind::kPut && !lock.value.has_value(); }

// Holds if no lock is in any of the cells, no write to them was committed since start_ts, and the transaction was not
// rolled back in this row (T4, T5, T11). The transaction's own lock or record makes it false too: a repeated prewrite
// has to look.
Condition MayWrite(const RowWrites& row, Timestamp start_ts);

// If MayWrite: sets lock and data of all cells.
RowMutation BuildPrewriteRow(const RowWrites& row, Timestamp start_ts);

// A cell's lock, as another client found it.
struct RowLock {
  std::string column;
  Lock lock;
};

// If all these locks are there: replaces them by write records at commit_ts (T2).
RowMutation BuildCommitRow(const RowWrites& row, Timestamp start_ts, Timestamp commit_ts);
RowMutation BuildCommitRow(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                           const std::vector<RowLock>& locks);

// The commit point: BuildCommitRow of the primary's row, with the removal of marks in that row (N4).
RowMutation BuildPrimaryCommitRow(const Writes& writes, Timestamp commit_ts);
// Returns whether the marks to be removed are in that row.
bool RemovesWithPrimary(const Writes& writes);

// Returns the mutations that commit the other rows, once the primary's is committed.
std::vector<RowMutation> BuildSecondaryCommitRows(const Writes& writes, Timestamp commit_ts);

// Adds the marks of the notified cells to the mutations of their rows. Marks have no condition.
void AddMarks(const Writes& writes, Timestamp commit_ts, std::vector<RowMutation>* rows);
// Adds the removal of marks.
void AddRemoval(const Writes& writes, std::vector<RowMutation>* rows);

// If all these locks are there: removes them with their data, and leaves a marker (T3).
RowMutation BuildRollbackRow(const RowWrites& row, Timestamp start_ts);
RowMutation BuildRollbackRow(const std::string& table, const std::string& row, Timestamp start_ts,
                             const std::vector<RowLock>& locks);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_WRITES_H_
