// What a transaction writes, and the changes of a row that the protocol is made of.
//
// A row of a transaction goes through these states, each arrow one conditional mutation of that row (T15):
//
//                  BuildPrewriteRow              BuildCommitRow
//     untouched --------------------------> locked --------------> committed
//         |                                   |
//         | BuildRollbackRow (a marker only)  | BuildRollbackRow
//         +--------> rolled back <------------+
//
// Writer and resolver build the last two with the same functions, so that whoever finishes a transaction leaves the same
// bytes behind, marks for observers included (N8: see mark.h). All are idempotent (T11): repeated, late or out of order
// they find their condition false.

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
  Lock lock;               // as it will be written; holds the value if that is short
  std::string long_value;  // else it is here, and goes to the family data
};

struct RowWrites {
  std::string table;
  std::string row;
  std::vector<CellWrite> cells;
};

// The marks of a cell up to a timestamp, which an observer's transaction takes away.
struct MarkRemoval {
  CellName cell;
  Timestamp until;
};

// All rows of one transaction. The first cell of the first row is the primary.
struct Writes {
  Timestamp start_ts;
  std::vector<RowWrites> rows;
  std::vector<CellName> notified;     // notify-only cells that get a mark at the commit timestamp (N9)
  uint32_t depth = 0;                 // of those marks
  std::optional<CellName> continued;  // one of them whose own observer goes on later: its mark is no deeper than before
  std::optional<MarkRemoval> removal;  // N4

  // Whether all locks name the same primary (T1), and no cell comes twice (T4). Also true of a part of a transaction's rows.
  bool consistent() const;
  // Whether that is the first cell of the first row, too.
  bool has_primary() const { return consistent() && !rows[0].cells[0].lock.primary.has_value(); }

  CellName primary() const { return {rows[0].table, rows[0].row, rows[0].cells[0].column}; }
};

// A put whose value is in the family data, at start_ts.
inline bool HasDataCell(const Lock& lock) { return lock.kind == WriteKind::kPut && !lock.value.has_value(); }

// True of the row: nobody holds a lock in one of the cells, nobody committed a write to one since start_ts, and the
// transaction was not rolled back here (T4, T5, T11). The transaction's own lock or record makes it
// false as well: a repeated prewrite has to look.
Condition MayWrite(const RowWrites& row, Timestamp start_ts);

// If MayWrite: sets lock and data of all cells.
RowMutation BuildPrewriteRow(const RowWrites& row, Timestamp start_ts);

// A cell's lock, as somebody else found it.
struct RowLock {
  std::string column;
  Lock lock;
};

// If all these locks are there: replaces them by write records at commit_ts (T2).
RowMutation BuildCommitRow(const RowWrites& row, Timestamp start_ts, Timestamp commit_ts);
RowMutation BuildCommitRow(const std::string& table, const std::string& row, Timestamp start_ts, Timestamp commit_ts,
                           const std::vector<RowLock>& locks);

// The commit point: BuildCommitRow of the primary's row; marks that are to be removed there go with it (N4).
RowMutation BuildPrimaryCommitRow(const Writes& writes, Timestamp commit_ts);
// Whether they are.
bool RemovesWithPrimary(const Writes& writes);

// What commits the other rows, once the primary's is.
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
