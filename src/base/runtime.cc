// SPDX-License-Identifier: Apache-2.0

#include "percolator/spi/runtime.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <random>
#include <thread>
#include <utility>

namespace percolator {
namespace {

class RealWaitQueue final : public WaitQueue {
 public:
  void Wait(Mutex* mutex) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { condition_.Wait(mutex); }
  void WaitFor(Mutex* mutex, Duration timeout) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    condition_.WaitFor(mutex, timeout);
  }
  void WakeOne() override { condition_.NotifyOne(); }
  void WakeAll() override { condition_.NotifyAll(); }

 private:
  CondVar condition_;
};

class QueueEvent final : public Event {
 public:
  explicit QueueEvent(std::unique_ptr<WaitQueue> queue) : queue_(std::move(queue)) {}

  void Set() override {
    MutexLock lock(&mutex_);
    happened_ = true;
    queue_->WakeAll();
  }
  void Wait() override {
    MutexLock lock(&mutex_);
    while (!happened_) queue_->Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  bool happened_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> queue_;
};

// Uses a futex directly. std::atomic::wait does too, but first yields the processor a few times, which is wasted work if
// many threads wait for the same event.
class FutexEvent final : public Event {
 public:
  void Set() override {
    if (state_.exchange(kHappened, std::memory_order_acq_rel) == kAwaited) Futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  void Wait() override {
    for (uint32_t state = state_.load(std::memory_order_acquire); state != kHappened;
         state = state_.load(std::memory_order_acquire)) {
      if (state == kNew && !state_.compare_exchange_strong(state, kAwaited, std::memory_order_acquire)) continue;
      Futex(FUTEX_WAIT_PRIVATE, kAwaited);
    }
  }

 private:
  static constexpr uint32_t kNew = 0;
  static constexpr uint32_t kAwaited = 1;
  static constexpr uint32_t kHappened = 2;

  // Ignores errors: they report an interrupted wait, or a state that has already changed.
  void Futex(int operation, uint32_t value) { syscall(SYS_futex, &state_, operation, value, nullptr, nullptr, 0); }

  std::atomic<uint32_t> state_{kNew};
};

class RealRuntime final : public Runtime {
 public:
  Duration Elapsed() override {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
  }
  void Sleep(Duration duration) override { std::this_thread::sleep_for(duration); }
  void Yield() override { std::this_thread::yield(); }
  uint64_t Random() override {
    static thread_local std::mt19937_64 generator(std::random_device{}());
    return generator();
  }
  void Start(std::function<void()> task) override { std::thread(std::move(task)).detach(); }
  std::unique_ptr<WaitQueue> NewWaitQueue() override { return std::make_unique<RealWaitQueue>(); }
  std::unique_ptr<Event> NewEvent() override { return std::make_unique<FutexEvent>(); }
};

}  // namespace

uint64_t Runtime::CurrentTask() {
  thread_local const char here = 0;
  return reinterpret_cast<uint64_t>(&here);
}

std::unique_ptr<Event> Runtime::NewEvent() { return std::make_unique<QueueEvent>(NewWaitQueue()); }

Runtime* Runtime::Real() {
  static RealRuntime* const runtime = new RealRuntime;
  return runtime;
}

}  // namespace percolator
