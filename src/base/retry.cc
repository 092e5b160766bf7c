// SPDX-License-Identifier: Apache-2.0

#include "src/base/retry.h"

#include <algorithm>
#include <limits>

#include "percolator/status.h"
#include "src/base/strings.h"

namespace percolator {

Deadline::Deadline(Runtime* runtime, Duration from_now)
    : runtime_(runtime), begun_(runtime->Elapsed()), end_(begun_ + std::min(from_now, kForever)) {}

Duration Deadline::left() const {
  if (over_ != nullptr && over_->load()) return Duration(0);
  return std::max(end_ - runtime_->Elapsed(), Duration(0));
}

std::string Deadline::waited() const { return StrCat((runtime_->Elapsed() - begun_).count() / 1000, " ms"); }

Deadline Deadline::Or(const std::atomic<bool>* over) const {
  Deadline sooner = *this;
  sooner.over_ = over;
  return sooner;
}

Deadline Deadline::AtMost(Duration from_now) const {
  Deadline sooner(runtime_, from_now);
  sooner.end_ = std::min(sooner.end_, end_);
  sooner.over_ = over_;
  return sooner;
}

Duration RetryDelay(Duration first, Duration max, int failures, uint64_t random) {
  max = std::min(max, kForever);
  Duration bound = std::clamp(first, Duration(2), kForever);
  for (int i = 1; i < failures && bound < max; ++i) bound *= 2;
  const auto half = static_cast<uint64_t>(std::max(std::min(bound, max), Duration(2)).count() / 2);
  return Duration(half + random % (half + 1));
}

Duration Backoff::Next() {
  if (failures_ < std::numeric_limits<int>::max()) ++failures_;
  return RetryDelay(first_, max_, failures_, runtime_->Random());
}

bool WaitAndRetry(const absl::Status& status, const Deadline& deadline, Backoff* backoff) {
  if (!IsTransient(status) || deadline.passed()) return false;
  backoff->Wait();
  return true;
}

}  // namespace percolator
