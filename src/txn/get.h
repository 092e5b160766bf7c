// Get: what a snapshot sees of cells (figure 6, Get). Scan uses the same parts (row_view.h) on pages of rows.
//
// T7  A cell's value at ts is that of its newest put or delete committed at or before ts. Verify records are passed over.
// T8  No lock with start_ts <= ts is passed by: its transaction might commit at or before ts. It is resolved, or waited
//     for. Lock and record are read in one consistent view of the row; the value, if it is in the family data, may be
//     read later, because it never changes.
// G3  A snapshot below the safe point answers nothing: that is checked after the reading, when nothing can be collected
//     any more without being noticed.

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

// The version of one cell at `ts`: the Get of figure 6. `make_deadline` is called when something is in the way, and only then:
// the usual read does not look at the clock.
//
// GetCells does the same for several cells, which share requests and wait together. To find out which cells share a row, which
// are locked and which have to be read on costs it a dozen allocations, even for a single cell. So a single one is read here.
absl::StatusOr<Version> GetCell(Environment& env, Timestamp ts, CellView cell,
                                absl::FunctionRef<Deadline()> make_deadline);

// A cell to be read. One that is only wanted is left out rather than waited for, and its long value is not loaded.
struct WantedCell {
  CellName cell;
  bool needed = true;
};

// The versions of the cells at `ts`, in the same order. Absent only where a cell was not needed and is locked.
// REQUIRES: no cell comes twice.
absl::StatusOr<std::vector<std::optional<Version>>> GetCells(Environment& env, Timestamp ts,
                                                             const std::vector<WantedCell>& cells,
                                                             const Deadline& deadline);

// The cells in their order, each once, as GetCells wants them.
std::vector<WantedCell> WithoutRepeats(absl::Span<const CellName> cells);

// Returns the values of cells. A cell may be named twice.
absl::StatusOr<std::vector<std::optional<std::string>>> GetValues(Environment& env, Timestamp ts,
                                                                  absl::Span<const CellName> cells,
                                                                  const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_GET_H_
