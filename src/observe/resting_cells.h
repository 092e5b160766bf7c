// SPDX-License-Identifier: Apache-2.0

// RestingCells: the cells with work left that scanners would find again and again: a lane had no room, or a foreign
// observer has something to do. They rest: they are not taken up for a scan period, unless they change.
//
// The observers that were done with a resting cell, and at which S, are remembered until it is taken up, also after its
// rest. So a cell ends even if there is never room for all its observers at once.
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_RESTING_CELLS_H_
#define PERCOLATOR_OBSERVE_RESTING_CELLS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "percolator/types.h"
#include "src/observe/queued_cell.h"

namespace percolator {

class RestingCells {
 public:
  RestingCells(size_t max_cells, Duration period);

  // Lets the cell rest, and remembers which of its jobs were done. Does nothing if too many cells rest.
  void Add(const QueuedCell& cell, Duration now);
  bool IsResting(const CellName& cell, Duration now) const;
  // Sets the jobs of a cell to what is remembered of them, unless the observers have changed.
  void Recall(QueuedCell* cell) const;
  void Forget(const CellName& cell) { cells_.erase(cell); }
  // Ends the rest of all cells; what is remembered of them stays.
  void EndAll();
  void Clear() { cells_.clear(); }

 private:
  struct Resting {
    Duration until{};
    ColumnObservers observers;
    std::vector<std::optional<Timestamp>> done_at;  // by observer
  };

  const size_t max_cells_;
  const Duration period_;
  std::map<CellName, Resting> cells_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_RESTING_CELLS_H_
