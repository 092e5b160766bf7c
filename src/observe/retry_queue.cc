#include "src/observe/retry_queue.h"

#include <algorithm>

#include "src/txn/environment.h"

namespace percolator {

Duration RetryDelay(Duration first, Duration max, int failures, uint64_t random) {
  max = std::min(max, kForever);
  Duration bound = std::clamp(first, Duration(2), kForever);
  for (int i = 1; i < failures && bound < max; ++i) bound *= 2;
  const auto half = static_cast<uint64_t>(std::max(std::min(bound, max), Duration(2)).count() / 2);
  return Duration(half + random % (half + 1));
}

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
