// The judge of raw cells: which cells of a table could not have been written by Percolator, or can't be used by it.
// percolator/inspect.h says what is looked for.

#ifndef PERCOLATOR_INSPECT_CHECK_CELLS_H_
#define PERCOLATOR_INSPECT_CHECK_CELLS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/inspect.h"
#include "percolator/spi/store.h"
#include "src/txn/environment.h"

namespace percolator {

// The bad cells of one row, judged by the row alone. REQUIRES: `row` has all its cells of all families.
std::vector<BadCell> CheckRow(const std::string& table, const Row& row);

// Calls `found` for every bad cell of the table, and `progress` after every page; adds to `counts`. Cells may change
// meanwhile: a cell that has changed or is gone when it is looked at again is not reported.
absl::Status CheckTable(Environment& env, const std::string& table, const std::function<void(const BadCell&)>& found,
                        const std::function<void(const CheckCounts&)>& progress, CheckCounts* counts);

// Erases exactly this version. Returns false if it has changed or is gone, and then leaves it alone.
absl::StatusOr<bool> EraseBadCell(Environment& env, const BadCell& bad);

}  // namespace percolator

#endif  // PERCOLATOR_INSPECT_CHECK_CELLS_H_
