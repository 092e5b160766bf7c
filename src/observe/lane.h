// SPDX-License-Identifier: Apache-2.0

// Lane: the jobs of one observer of this worker, or of all foreign observers together.
//
// N11  Each lane has its own limits for the jobs that are pending, and for those that run at the same time. So an
// observer with a long queue takes no room from another.
//
// Not thread-safe: the mutex of dispatch guards it.

#ifndef PERCOLATOR_OBSERVE_LANE_H_
#define PERCOLATOR_OBSERVE_LANE_H_

#include <cstddef>
#include <deque>
#include <optional>

#include "src/observe/job.h"

namespace percolator {

class Lane {
 public:
  Lane(int max_running, size_t max_pending);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Counts the jobs that are not done.
  void AddPending() { ++pending_; }
  void RemovePending() { --pending_; }
  size_t pending() const { return pending_; }
  // Returns whether there is room for another job.
  bool HasRoom() const { return pending_ < max_pending_; }

  // Queues a job that is ready.
  void Push(const JobRef& job) { ready_.push_back(job); }
  // Takes the first job that is still ready, and counts it as running. Returns nullopt if there is none, or if the
  // limit of runs is reached.
  std::optional<JobRef> StartNext();
  void EndRun() { --running_; }
  // Drops the jobs that are ready.
  void Clear() { ready_.clear(); }

 private:
  const int max_running_;
  const size_t max_pending_;
  int running_ = 0;
  size_t pending_ = 0;
  std::deque<JobRef> ready_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_LANE_H_
