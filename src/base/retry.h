// SPDX-License-Identifier: Apache-2.0

// Retries: deadlines, delays, and loops that use both.

#ifndef PERCOLATOR_BASE_RETRY_H_
#define PERCOLATOR_BASE_RETRY_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "percolator/spi/runtime.h"
#include "percolator/types.h"

namespace percolator {

// A hundred years. It can be added to a time without overflow.
inline constexpr Duration kForever = std::chrono::hours(24 * 365 * 100);

// A moment of Runtime::Elapsed.
class Deadline {
 public:
  // Treats a `from_now` above kForever as kForever.
  Deadline(Runtime* runtime, Duration from_now);

  bool passed() const { return runtime_->Elapsed() >= end_ || (over_ != nullptr && over_->load()); }
  // Returns the remaining time, or zero if the deadline has passed.
  Duration left() const;
  // Returns the time since this deadline was constructed, as text: "1500 ms".
  std::string waited() const;
  // Returns this deadline, which then also passes when `over` becomes true. `over` must outlive it.
  Deadline Or(const std::atomic<bool>* over) const;
  // Returns the earlier of this deadline and `from_now`.
  Deadline AtMost(Duration from_now) const;

  Runtime* runtime() const { return runtime_; }

 private:
  Runtime* runtime_;
  Duration begun_;
  Duration end_;
  const std::atomic<bool>* over_ = nullptr;
};

// Returns how long to wait after `failures` failures in a row. The upper bound is `first`, doubled after each failure but the
// first, and at most `max`. The result is random, between half of that bound and the bound, so that clients that conflicted
// once do not conflict again.
Duration RetryDelay(Duration first, Duration max, int failures, uint64_t random);

// A sequence of such delays.
class Backoff {
 public:
  explicit Backoff(Runtime* runtime, Duration first = std::chrono::microseconds(50),
                   Duration max = std::chrono::milliseconds(50))
      : runtime_(runtime), first_(first), max_(max) {}

  // Counts one more failure, and returns how long to wait after it.
  Duration Next();
  void Wait() { runtime_->Sleep(Next()); }
  // Starts over, after a success.
  void Reset() { failures_ = 0; }

 private:
  Runtime* const runtime_;
  const Duration first_;
  const Duration max_;
  int failures_ = 0;
};

// If `status` is a transient error and the deadline has not passed, waits and returns true: the caller should retry.
bool WaitAndRetry(const absl::Status& status, const Deadline& deadline, Backoff* backoff);

// Calls `attempt()`, which returns a Status or StatusOr, until the deadline passes or the result is not a transient error,
// and returns the last result. `result` is the result of a first attempt. It is separate so that a caller whose first
// attempt succeeds need not read the clock for a deadline.
template <typename Result, typename Attempt>
Result RetryAfter(Result result, const Deadline& deadline, const Attempt& attempt) {
  const auto wait = [&](Backoff* backoff) {
    if constexpr (std::is_same_v<Result, absl::Status>) {
      return WaitAndRetry(result, deadline, backoff);
    } else {
      return WaitAndRetry(result.status(), deadline, backoff);
    }
  };
  for (Backoff backoff(deadline.runtime()); !result.ok() && wait(&backoff);) result = attempt();
  return result;
}

// The same, including the first attempt.
template <typename Attempt>
std::invoke_result_t<const Attempt&> RetryUntil(const Deadline& deadline, const Attempt& attempt) {
  return RetryAfter(attempt(), deadline, attempt);
}

}  // namespace percolator

#endif  // PERCOLATOR_BASE_RETRY_H_
