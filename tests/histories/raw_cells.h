// The cells of the store as they are, decoded: for dumps, and for rules that hold at every moment.
//
// A dump looks like figure 4 of the paper: beside each cell what its three columns hold, each with its versions one below
// the other, newest first.
//
//         | data | lock                  | write
//     Bob |      | 7: put 3, primary     | 6: put 10 @5
//     Joe |      | 7: put 9, primary Bob | 6: put 2 @5
//
// In the column write, "@5" is the start of the transaction that wrote it, and where its data is if the value is not shown.
// "primary" says that this cell is the primary, "primary Bob" which one is. Rollback markers belong to a row, and are
// shown with its name. If there are marks for observers, they stand in a column more: "8: mark" is final, "7: pending" is
// the companion of a lock. An acknowledgement is "ack of Bob by pay", with "seen @9" for the start of the run that it is of.
// Percolator's own table is not shown.

#ifndef PERCOLATOR_TESTS_HISTORIES_RAW_CELLS_H_
#define PERCOLATOR_TESTS_HISTORIES_RAW_CELLS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"
#include "tests/histories/names.h"

namespace percolator {

struct RawCell {
  CellName name;
  Family family = Family::kData;
  Timestamp timestamp;
  std::string value;
  // By its family, one of these.
  std::optional<Lock> lock;
  std::optional<WriteRecord> record;
  std::optional<Mark> mark;
  bool pending = false;  // the mark; `name` is that of the cell it is of

  bool is_marker() const { return record.has_value() && record->kind == WriteKind::kRollback; }
  friend bool operator==(const RawCell& a, const RawCell& b) {
    return a.name == b.name && a.family == b.family && a.timestamp == b.timestamp && a.pending == b.pending &&
           a.value == b.value;
  }
};

// All there are, by table, row, column, newest first. kDataLoss: one that is no record.
absl::StatusOr<std::vector<RawCell>> ReadRawCells(Store* store);

// As lines of text.
std::string DumpText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// "x by t1, y by t1", or "none".
std::string LocksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// "x @4, y pending @3", or "none".
std::string MarksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps);
// A value as scripts write it: long ones of equal letters as "300*a".
std::string ValueText(const std::string& value);

// What is wrong with them, empty if nothing is. Of the invariants of docs/invariants.md, this much:
//
//   T1, T3  a transaction that was rolled back somewhere has committed nowhere
//   T2      a transaction has one commit timestamp
//   T4      a cell has one lock at most, and not both lock and record of a transaction, nor two records of it
//   T5      transactions that have written the same cell did not overlap; T6: they committed after they started
//   G5      a value that is not in its lock or record is in the data, and no data is there without them
//   N1      a pending mark stands beside each lock of an observed cell, and beside nothing else
std::vector<std::string> BrokenRules(const std::vector<RawCell>& cells);

// N1, for an observer of a column, if it did not come later than the writes: a cell that has changed since the observer's
// acknowledgement has a mark. What is wrong with that.
std::vector<std::string> LostChanges(const std::vector<RawCell>& cells, const std::string& observer,
                                     const CellName& observed);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_RAW_CELLS_H_
