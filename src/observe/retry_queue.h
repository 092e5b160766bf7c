// SPDX-License-Identifier: Apache-2.0

// RetryQueue: the jobs that wait for their next attempt, by the time when it is due.
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_RETRY_QUEUE_H_
#define PERCOLATOR_OBSERVE_RETRY_QUEUE_H_

#include <map>
#include <optional>

#include "percolator/types.h"
#include "src/observe/job.h"

namespace percolator {

class RetryQueue {
 public:
  // Adds a job that waits until its retry_at.
  void Add(const JobRef& job);
  // Takes the first job that is due and still waits. Returns nullopt if there is none.
  std::optional<JobRef> TakeDue(Duration now);
  // Returns when the first job is due; nullopt if the queue is empty.
  std::optional<Duration> NextDue() const;
  void Clear() { by_time_.clear(); }

 private:
  std::multimap<Duration, JobRef> by_time_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_RETRY_QUEUE_H_
