// SPDX-License-Identifier: Apache-2.0

#include "src/observe/retry_queue.h"

namespace percolator {

void RetryQueue::Add(const JobRef& job) { by_time_.emplace(job.job().retry_at, job); }

std::optional<JobRef> RetryQueue::TakeDue(Duration now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const auto [due, ref] = *by_time_.begin();
    by_time_.erase(by_time_.begin());
    const Job& job = ref.job();
    if (job.state == Job::State::kWaiting && job.retry_at == due) return ref;
  }
  return std::nullopt;
}

std::optional<Duration> RetryQueue::NextDue() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace percolator
