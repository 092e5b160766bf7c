// SPDX-License-Identifier: Apache-2.0

#include "src/observe/resting_cells.h"

namespace percolator {

RestingCells::RestingCells(size_t max_cells, Duration period) : max_cells_(max_cells), period_(period) {}

void RestingCells::Add(const QueuedCell& cell, Duration now) {
  if (cells_.size() >= max_cells_) {
    std::erase_if(cells_, [now](const auto& resting) { return resting.second.until <= now; });
  }
  if (cells_.size() >= max_cells_) return;
  Resting& resting = cells_[cell.name];
  resting = {now + period_, cell.observers, {}};
  for (const Job& job : cell.jobs) resting.done_at.push_back(job.done_at);
}

bool RestingCells::IsResting(const CellName& cell, Duration now) const {
  const auto it = cells_.find(cell);
  return it != cells_.end() && now < it->second.until;
}

void RestingCells::Recall(QueuedCell* cell) const {
  const auto it = cells_.find(cell->name);
  if (it == cells_.end() || it->second.observers != cell->observers) return;
  for (size_t i = 0; i < cell->jobs.size(); ++i) cell->jobs[i].done_at = it->second.done_at[i];
}

void RestingCells::EndAll() {
  for (auto& [cell, resting] : cells_) resting.until = Duration(0);
}

}  // namespace percolator
