// SPDX-License-Identifier: Apache-2.0

// Job: the work of one observer for one queued cell (dispatch.h).
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_JOB_H_
#define PERCOLATOR_OBSERVE_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "percolator/types.h"

namespace percolator {

struct ClusterObserver;
struct QueuedCell;

struct Job {
  enum class State : uint8_t { kReady, kRunning, kWaiting, kDone };

  const ClusterObserver* observer = nullptr;
  State state = State::kDone;
  bool again = false;                // a hint came while it ran
  bool left_out = false;             // done, but the observer is not done with the cell
  std::optional<Timestamp> done_at;  // the observer has seen every change up to this
  int failures = 0;                  // in a row
  int transient_errors = 0;          // in a row
  Duration since{};                  // when it was last taken up
  Duration retry_at{};               // kWaiting
};

// A job in a queue. It is out of date if the job has left the state of that queue by its turn.
struct JobRef {
  Job& job() const;

  std::shared_ptr<QueuedCell> cell;
  size_t index = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_JOB_H_
