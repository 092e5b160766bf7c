// RetryQueue: the jobs that wait for their next attempt, by when it is due.
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_RETRY_QUEUE_H_
#define PERCOLATOR_OBSERVE_RETRY_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>

#include "percolator/types.h"
#include "src/observe/job.h"

namespace percolator {

// Returns how long to wait after the given number of failures in a row: at most `first`, doubled after each but the first,
// and never more than `max`. It is at least half of that; the rest is random, so that jobs that were in each other's way
// do not meet again.
Duration RetryDelay(Duration first, Duration max, int failures, uint64_t random);

class RetryQueue {
 public:
  // Adds a job that waits until its retry_at.
  void Add(const JobRef& job);
  // Takes out the first job that is due and still waits. Returns nothing if there is none.
  std::optional<JobRef> TakeDue(Duration now);
  // Returns when to look again; nothing if the queue is empty.
  std::optional<Duration> NextDue() const;
  void Clear() { by_time_.clear(); }

 private:
  std::multimap<Duration, JobRef> by_time_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_RETRY_QUEUE_H_
