// Trying again: until when, how long to wait in between, and the loop made of both.

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

// Long enough for everybody, and can be added to a time without overflow.
inline constexpr Duration kForever = std::chrono::hours(24 * 365 * 100);

// A moment of Runtime::Elapsed until which something may take.
class Deadline {
 public:
  // Not later than kForever from now.
  Deadline(Runtime* runtime, Duration from_now);

  bool passed() const { return runtime_->Elapsed() >= end_ || (over_ != nullptr && over_->load()); }
  // Returns the remaining time, or zero if the deadline has passed.
  Duration left() const;
  // Returns how long it has been waited for, in text: "1500 ms".
  std::string waited() const;
  // The same, which also passes when `over` becomes true. That must outlive it.
  Deadline Or(const std::atomic<bool>* over) const;
  // The earlier of the two.
  Deadline AtMost(Duration from_now) const;

  Runtime* runtime() const { return runtime_; }

 private:
  Runtime* runtime_;
  Duration begun_;
  Duration end_;
  const std::atomic<bool>* over_ = nullptr;
};

// Returns how long to wait after the given number of failures in a row: at most `first`, doubled after each but the first,
// and never more than `max`. It is at least half of that; the rest is random, so that those who were in each other's way
// do not meet again.
Duration RetryDelay(Duration first, Duration max, int failures, uint64_t random);

// Waits that grow so.
class Backoff {
 public:
  explicit Backoff(Runtime* runtime, Duration first = std::chrono::microseconds(50),
                   Duration max = std::chrono::milliseconds(50))
      : runtime_(runtime), first_(first), max_(max) {}

  // Returns how long to wait after one more failure.
  Duration Next();
  void Wait() { runtime_->Sleep(Next()); }
  // After a success: the next wait is a first one.
  void Reset() { failures_ = 0; }

 private:
  Runtime* const runtime_;
  const Duration first_;
  const Duration max_;
  int failures_ = 0;
};

// If `status` is a transient error and there is time left: waits, and returns true. Then it should be tried again.
bool WaitAndRetry(const absl::Status& status, const Deadline& deadline, Backoff* backoff);

// Returns what `attempt()` does, a Status or StatusOr. It is called again as long as it fails for a transient reason, until
// the deadline; once at least. This one is for after a first attempt, which returned `result`: if that is a success, the
// caller has no need to look at the clock for a deadline.
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

template <typename Attempt>
std::invoke_result_t<const Attempt&> RetryUntil(const Deadline& deadline, const Attempt& attempt) {
  return RetryAfter(attempt(), deadline, attempt);
}

}  // namespace percolator

#endif  // PERCOLATOR_BASE_RETRY_H_
