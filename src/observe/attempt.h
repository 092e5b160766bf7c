// SPDX-License-Identifier: Apache-2.0

// Attempt: what a thread of dispatch does for one job without the mutex. It claims the row, runs the observer, and
// quarantines a notification that has failed too often.

#ifndef PERCOLATOR_OBSERVE_ATTEMPT_H_
#define PERCOLATOR_OBSERVE_ATTEMPT_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "src/observe/cluster_observers.h"
#include "src/observe/job.h"
#include "src/observe/run.h"

namespace percolator {

// Dispatch's access to the cluster: functions of run.h and quarantine.h, and claims. Thread-safe.
struct DispatchCallbacks {
  std::function<RunOutcome(const RunRequest& request)> run;
  std::function<absl::Status(const CellName& cell, Timestamp until)> remove_marks;
  std::function<absl::StatusOr<Timestamp>(const ObserverInfo& observer, const CellName& cell, Timestamp tried_at,
                                          int attempts, const absl::Status& error)>
      quarantine;
  // Returns false if another worker has the row.
  std::function<bool(const CellName& cell)> claim;
  std::function<void(const CellName& cell)> release;
};

struct Attempt {
  JobRef job;  // use the job itself only with the mutex
  const ClusterObserver* observer = nullptr;
  RunRequest request;
  bool ask_claim = false;      // claim the row first
  bool claim_refused = false;  // known before the attempt: another worker has the row
  int failures = 0;            // before this attempt
};

struct AttemptResult {
  bool claim_refused = false;  // another worker has the row: nothing was done
  RunOutcome outcome;
  std::optional<absl::StatusOr<Timestamp>> quarantined_at;  // absent: not quarantined
};

AttemptResult Execute(const Attempt& attempt, const DispatchCallbacks& callbacks, const WorkerOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_ATTEMPT_H_
