// SPDX-License-Identifier: Apache-2.0

// Everything that a store holds, decoded, and the rules that hold for it at every moment.

#ifndef PERCOLATOR_TESTS_HARNESS_RAW_CELLS_H_
#define PERCOLATOR_TESTS_HARNESS_RAW_CELLS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "percolator/status.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"

namespace percolator {

struct RawCell {
  CellName name;
  Family family = Family::kData;
  Timestamp timestamp;
  std::string value;
  // One of these, by family.
  std::optional<Lock> lock;
  std::optional<WriteRecord> record;
  std::optional<Mark> mark;
  bool pending = false;  // whether the mark is pending; `name` is then the marked cell

  bool is_marker() const { return record.has_value() && record->kind == WriteKind::kRollback; }
  bool is_change() const {
    return record.has_value() && (record->kind == WriteKind::kPut || record->kind == WriteKind::kDelete);
  }
  friend bool operator==(const RawCell& a, const RawCell& b) {
    return a.name == b.name && a.family == b.family && a.timestamp == b.timestamp && a.pending == b.pending &&
           a.value == b.value;
  }
};

// Returns all cells by table, row and column; those of a family newest first. Returns DataLoss if a cell is malformed.
absl::StatusOr<std::vector<RawCell>> ReadRawCells(Store* store);

// The start of the run that an acknowledgement is of. Zero: a run is required, whatever was seen.
Timestamp SeenBy(std::string_view ack);

// Returns one line for each violation in the cells; empty if there is none. It checks this part of docs/invariants.md:
//
//   T1  a transaction that was rolled back somewhere has committed nowhere
//   T2  a transaction has one commit timestamp, and a lock or record without its value has it in the data
//   T3  no row holds both a lock or record and the rollback marker of its transaction
//   T4  a cell has at most one lock, and at most one lock or record of a transaction
//   T5  transactions that have written the same cell did not overlap
//   T6  a commit is later than its start
//   G5  no data without a lock or record that points to it
//   N1  a pending mark stands beside each lock of an observed cell, and beside nothing else
std::vector<std::string> BrokenRules(const std::vector<RawCell>& cells);

// N1, for an observer of a cell that was registered before the writes: if the cell has changed since the observer's
// acknowledgement, it has a mark. Returns the violations.
std::vector<std::string> LostChanges(const std::vector<RawCell>& cells, const std::string& observer,
                                     const CellName& observed);

// N2, unless versions were collected: between two runs of an observer that committed for a cell, the cell has changed.
// Returns the violations.
std::vector<std::string> RepeatedRuns(const std::vector<RawCell>& cells);

// Reads a store from which no versions were collected. Returns its broken rules and repeated runs, or why it cannot be
// read.
std::vector<std::string> Audit(Store* store);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_RAW_CELLS_H_
