// SPDX-License-Identifier: Apache-2.0

#include "src/observe/queued_cell.h"

#include <algorithm>

namespace percolator {

bool QueuedCell::IsDone() const {
  return std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.state == Job::State::kDone; });
}

bool QueuedCell::OnlyWaits() const {
  bool waits = false;
  for (const Job& job : jobs) {
    if (job.state == Job::State::kReady || job.state == Job::State::kRunning) return false;
    waits = waits || job.state == Job::State::kWaiting;
  }
  return waits;
}

std::optional<Timestamp> QueuedCell::AllDoneAt(const Job* except) const {
  if (stale) return std::nullopt;
  Timestamp smallest = Timestamp::Infinity();
  for (const Job& job : jobs) {
    if (&job == except) continue;
    if (!job.done_at.has_value()) return std::nullopt;
    smallest = std::min(smallest, *job.done_at);
  }
  return smallest;
}

Job& JobRef::job() const { return cell->jobs[index]; }

}  // namespace percolator
