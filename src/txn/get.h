// SPDX-License-Identifier: Apache-2.0

// Get: what a snapshot sees of cells (figure 6, Get). Scan uses the same parts (row_view.h) on pages of rows.
//
// T7  A cell's value at ts is that of its newest put or delete committed at or before ts. Verify records are skipped.
// T8  No lock with start_ts <= ts is ignored: its transaction might commit at or before ts. It is resolved, or waited for.
//     Lock and record are read in one consistent view of the row; a value in the family data may be read later, because it
//     never changes.
// G3  A read below the safe point fails. That is checked after the read, when a collection in between is noticed.

#ifndef PERCOLATOR_TXN_GET_H_
#define PERCOLATOR_TXN_GET_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/txn/environment.h"
#include "src/txn/row_view.h"

namespace percolator {

// Returns the version of one cell at `ts`: the Get of figure 6. `make_deadline` is called only after an obstacle: the
// usual read does not read the clock.
//
// GetCells does the same for several cells, which share requests and wait together. Its bookkeeping of rows and locks
// costs a dozen allocations even for a single cell, so single cells are read here.
absl::StatusOr<Version> GetCell(Environment& env, Timestamp ts, CellView cell,
                                absl::FunctionRef<Deadline()> make_deadline);

// A cell to be read. An optional one (not `needed`) is skipped if it is locked, and its long value is not loaded.
struct WantedCell {
  CellName cell;
  bool needed = true;
};

// Returns the versions of the cells at `ts`, in the same order. Absent only if a cell was not needed and is locked.
// REQUIRES: no cell occurs twice.
absl::StatusOr<std::vector<std::optional<Version>>> GetCells(Environment& env, Timestamp ts,
                                                             const std::vector<WantedCell>& cells,
                                                             const Deadline& deadline);

// Returns the cells in order, each once, for GetCells.
std::vector<WantedCell> WithoutRepeats(absl::Span<const CellName> cells);

// Returns the values of cells. A cell may be named twice.
absl::StatusOr<std::vector<std::optional<std::string>>> GetValues(Environment& env, Timestamp ts,
                                                                  absl::Span<const CellName> cells,
                                                                  const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_GET_H_
