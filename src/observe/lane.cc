// SPDX-License-Identifier: Apache-2.0

#include "src/observe/lane.h"

#include <utility>

namespace percolator {

Lane::Lane(int max_running, size_t max_pending) : max_running_(max_running), max_pending_(max_pending) {}

std::optional<JobRef> Lane::StartNext() {
  while (running_ < max_running_ && !ready_.empty()) {
    JobRef ref = std::move(ready_.front());
    ready_.pop_front();
    if (ref.job().state != Job::State::kReady) continue;
    ++running_;
    return ref;
  }
  return std::nullopt;
}

}  // namespace percolator
