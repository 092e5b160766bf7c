// CallGate: lets calls in until it is closed, and tells when the last one has left.
//
// A call counts itself in one of many counters, which the threads share among them, and then looks whether the gate is
// closed. Close does it the other way around: it closes the gate, then waits for each counter to be zero. Both steps are
// sequentially consistent, so a call that found the gate open is seen by Close.

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
  // A call in progress, if ok(). It ends with this object, on the thread that made it.
  class Call {
   public:
    explicit Call(CallGate* gate) : counter_(&gate->counters_[ThreadIndex() % kCounters].calls) {
      counter_->fetch_add(1);
      if (!gate->closed_.load()) return;
      counter_->fetch_sub(1);
      counter_ = nullptr;
    }
    ~Call() {
      if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_release);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool ok() const { return counter_ != nullptr; }

   private:
    std::atomic<int64_t>* counter_;
  };

  // From now on every Call fails.
  void Close() { closed_.store(true); }
  const std::atomic<bool>& closed() const { return closed_; }

  // Returns when no call is in progress any more. REQUIRES: Close was called, and not within a Call.
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
  static constexpr size_t kCounters = 64;
  struct alignas(64) Counter {
    std::atomic<int64_t> calls{0};
  };

  // A number for the calling thread; the first threads have different ones.
  static size_t ThreadIndex();

  std::atomic<bool> closed_{false};
  std::array<Counter, kCounters> counters_;
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_CALL_GATE_H_
