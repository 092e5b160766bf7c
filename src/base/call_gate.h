// SPDX-License-Identifier: Apache-2.0

// CallGate: admits calls until it is closed, and waits until the last admitted call has ended.
//
// A call first increments one of many counters, and then checks whether the gate is closed. Each of the first threads of
// the process has a counter to itself, which it changes without a locked instruction at the end of a call; later threads
// share the others.
// Closing uses the opposite order: Close closes the gate, then WaitForCalls waits for each counter to be zero. All these
// steps are sequentially consistent, so WaitForCalls sees every call that found the gate open.

#ifndef PERCOLATOR_BASE_CALL_GATE_H_
#define PERCOLATOR_BASE_CALL_GATE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "percolator/spi/runtime.h"
#include "src/base/check.h"

namespace percolator {

class CallGate {
 public:
  // A call in progress if ok(). It ends when this object is destroyed, on the thread that constructed it.
  class Call {
   public:
    explicit Call(CallGate* gate) : thread_(ThreadIndex()), counter_(&gate->CounterOf(thread_)) {
      IsOwned() ? counter_->store(counter_->load(std::memory_order_relaxed) + 1) : Add(1);
      if (!gate->closed_.load()) return;
      Leave();
      counter_ = nullptr;
    }
    ~Call() {
      if (counter_ != nullptr) Leave();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool ok() const { return counter_ != nullptr; }

   private:
    bool IsOwned() const { return thread_ < kOwned; }
    void Add(int64_t n) { counter_->fetch_add(n); }
    void Leave() {
      IsOwned() ? counter_->store(counter_->load(std::memory_order_relaxed) - 1, std::memory_order_release) : Add(-1);
    }

    const size_t thread_;
    std::atomic<int64_t>* counter_;
  };

  // Makes every later Call fail.
  void Close() { closed_.store(true); }
  const std::atomic<bool>& closed() const { return closed_; }

  // Waits until no call is in progress. REQUIRES: Close was called; the calling thread has no Call.
  void WaitForCalls(Runtime* runtime) const {
    PERCOLATOR_DCHECK(closed_.load());
    Duration pause = std::chrono::microseconds(20);
    for (const Counter& counter : counters_) {
      while (counter.calls.load() != 0) {
        runtime->Sleep(pause);
        pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(5));
      }
    }
  }

 private:
  static constexpr size_t kOwned = 32;  // counters that belong to one thread each
  static constexpr size_t kShared = 32;
  struct alignas(64) Counter {
    std::atomic<int64_t> calls{0};
  };

  std::atomic<int64_t>& CounterOf(size_t thread) {
    return counters_[thread < kOwned ? thread : kOwned + thread % kShared].calls;
  }
  // Returns the number of the calling thread. Every thread has a different one.
  static size_t ThreadIndex();

  std::atomic<bool> closed_{false};
  std::array<Counter, kOwned + kShared> counters_;
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_CALL_GATE_H_
