// SPDX-License-Identifier: Apache-2.0

// QueuedCell: a cell that dispatch has taken up, with a job for each observer of its column (dispatch.h).
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_QUEUED_CELL_H_
#define PERCOLATOR_OBSERVE_QUEUED_CELL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "percolator/types.h"
#include "src/observe/cluster_observers.h"
#include "src/observe/job.h"

namespace percolator {

struct QueuedCell {
  enum class Claim : uint8_t { kNone, kAsking, kHeld, kRefused };

  // Returns whether all jobs are done.
  bool IsDone() const;
  // Returns whether a job waits for its next attempt, and all others are done.
  bool OnlyWaits() const;
  // Returns the largest S up to which all observers, without that of `except`, have seen every change. Returns nullopt
  // if one of them has not, or if the observers of the cluster have changed.
  std::optional<Timestamp> AllDoneAt(const Job* except = nullptr) const;

  CellName name;
  ColumnObservers observers;  // keeps alive what the jobs point to
  std::vector<Job> jobs;      // in the order of the observers
  Claim claim = Claim::kNone;
  bool stale = false;       // the observers of the cluster have changed: others may have to see the marks
  bool ending = false;      // a thread removes its marks and ends it
  Timestamp removed_until;  // marks up to this are removed
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_QUEUED_CELL_H_
