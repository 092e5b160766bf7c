// SPDX-License-Identifier: Apache-2.0

// Checks raw cells: finds those of a table that Percolator cannot have written, or cannot use. percolator/inspect.h
// lists the checks.

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

// Returns the bad cells of one row, judged by the row alone. REQUIRES: `row` has all its cells of all families.
std::vector<BadCell> CheckRow(const std::string& table, const Row& row);

// Calls `found` for every bad cell of the table, and `progress` after every page; adds to `counts`. Cells may change at
// the same time: a cell that has changed or is gone when it is read again is not reported.
absl::Status CheckTable(Environment& env, const std::string& table, const std::function<void(const BadCell&)>& found,
                        const std::function<void(const CheckCounts&)>& progress, CheckCounts* counts);

// Erases exactly this version. Returns false, and erases nothing, if it has changed or is gone.
absl::StatusOr<bool> EraseBadCell(Environment& env, const BadCell& bad);

}  // namespace percolator

#endif  // PERCOLATOR_INSPECT_CHECK_CELLS_H_
