#include "src/base/runtime.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace percolator {
namespace {

class RealWaitQueue final : public WaitQueue {
 public:
  void Wait(Mutex* mutex) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { condition_.Wait(mutex); }
  void WaitFor(Mutex* mutex, Duration at_most) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    condition_.WaitFor(mutex, at_most);
  }
  void WakeOne() override { condition_.NotifyOne(); }
  void WakeAll() override { condition_.NotifyAll(); }

 private:
  CondVar condition_;
};

class RealRuntime final : public Runtime {
 public:
  Duration Elapsed() override {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
  }
  void Sleep(Duration duration) override { std::this_thread::sleep_for(duration); }
  uint64_t Random() override {
    static thread_local std::mt19937_64 generator(std::random_device{}());
    return generator();
  }
  void Start(std::function<void()> task) override { std::thread(std::move(task)).detach(); }
  std::unique_ptr<WaitQueue> NewWaitQueue() override { return std::make_unique<RealWaitQueue>(); }
};

}  // namespace

Runtime* Runtime::Real() {
  static RealRuntime* const runtime = new RealRuntime;
  return runtime;
}

}  // namespace percolator
