// What the steps of the protocol work with. One per cluster; all parts may be used by any number of threads.

#ifndef PERCOLATOR_TXN_ENVIRONMENT_H_
#define PERCOLATOR_TXN_ENVIRONMENT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "percolator/status.h"
#include "src/base/strings.h"
#include "src/txn/observed.h"
#include "src/txn/verdict.h"

namespace percolator {

// What was done, for ClusterMetrics.
struct Counters {
  std::atomic<uint64_t> commits{0};
  std::atomic<uint64_t> conflicts{0};
  std::atomic<uint64_t> unknown_outcomes{0};
  std::atomic<uint64_t> store_reads{0};
  std::atomic<uint64_t> cells_prefetched{0};
  std::atomic<uint64_t> prefetched_cells_used{0};
  std::atomic<uint64_t> foreign_locks_found{0};
  std::atomic<uint64_t> rolled_forward{0};
  std::atomic<uint64_t> rolled_back{0};
  std::atomic<uint64_t> versions_collected{0};

  static void Add(std::atomic<uint64_t>* counter, uint64_t n = 1) {
    if (n != 0) counter->fetch_add(n, std::memory_order_relaxed);
  }
};

struct Environment {
  Store* store = nullptr;
  Oracle* oracle = nullptr;
  Coordinator* coordinator = nullptr;
  Runtime* runtime = nullptr;
  SessionId session = 0;
  ClusterOptions options;
  ObservedColumns observed;
  VerdictCache verdicts;
  Counters counters;
  // Commits that make marks: how many have begun, and how many of these have come to their end.
  std::atomic<uint64_t> marks_begun{0};
  std::atomic<uint64_t> marks_ended{0};
};

// Long enough for everybody, and can be added to a time without overflow.
inline constexpr Duration kForever = std::chrono::hours(24 * 365 * 100);

// A moment of Runtime::Elapsed until which something may take.
class Deadline {
 public:
  Deadline(Runtime* runtime, Duration from_now)
      : runtime_(runtime), begun_(runtime->Elapsed()), end_(begun_ + std::min(from_now, kForever)) {}

  bool passed() const { return runtime_->Elapsed() >= end_ || (over_ != nullptr && over_->load()); }
  // How long it has been waited for, in text: "1500 ms".
  std::string waited() const { return StrCat((runtime_->Elapsed() - begun_).count() / 1000, " ms"); }
  // The same, which also passes when `over` becomes true. That must outlive it.
  Deadline Or(const std::atomic<bool>* over) const {
    Deadline sooner = *this;
    sooner.over_ = over;
    return sooner;
  }
  // The earlier of the two.
  Deadline AtMost(Duration from_now) const {
    Deadline sooner(runtime_, from_now);
    sooner.end_ = std::min(sooner.end_, end_);
    sooner.over_ = over_;
    return sooner;
  }

 private:
  Runtime* runtime_;
  Duration begun_;
  Duration end_;
  const std::atomic<bool>* over_ = nullptr;
};

// Waits that grow: each a random part of a bound that doubles, so that those who wait for the same thing do not come back
// together.
class Backoff {
 public:
  explicit Backoff(Runtime* runtime, Duration first = std::chrono::microseconds(50),
                   Duration most = std::chrono::milliseconds(50))
      : runtime_(runtime), bound_(first), most_(most) {}

  void Wait() {
    const auto half = static_cast<uint64_t>(bound_.count() / 2);
    runtime_->Sleep(Duration(half + runtime_->Random() % (half + 1)));
    bound_ = std::min(bound_ * 2, most_);
  }

 private:
  Runtime* const runtime_;
  Duration bound_;
  const Duration most_;
};

// Waits, if `status` is a passing condition and there is time left: true, try again.
inline bool WaitAndRetry(const absl::Status& status, const Deadline& deadline, Backoff* backoff) {
  if (!IsTransient(status) || deadline.passed()) return false;
  backoff->Wait();
  return true;
}

// A fresh timestamp. If the first try fails, `make_deadline()` says until when others follow; there is no need to look at
// the clock before.
template <typename MakeDeadline>
absl::StatusOr<Timestamp> DrawTimestamp(Environment& env, const MakeDeadline& make_deadline) {
  absl::StatusOr<Timestamp> ts = env.oracle->GetTimestamp();
  if (ts.ok()) return ts;
  const Deadline deadline = make_deadline();
  for (Backoff backoff(env.runtime); !ts.ok() && WaitAndRetry(ts.status(), deadline, &backoff);) {
    ts = env.oracle->GetTimestamp();
  }
  return ts;
}

// The same, tried for as long as a call may take.
inline absl::StatusOr<Timestamp> DrawForCall(Environment& env) {
  return DrawTimestamp(env, [&env] { return Deadline(env.runtime, env.options.call_timeout); });
}

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ENVIRONMENT_H_
