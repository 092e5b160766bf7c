// VirtualRuntime: a Runtime in which nobody waits for real, and every run is the same.
//
// Tasks are threads, of which exactly one runs at any moment. A task runs until it sleeps or waits, then the next one in
// line does. Time stands still while somebody can run; when all sleep, it jumps to the moment at which the first of them
// wakes. Nothing is drawn: Random is always zero, so a wait with backoff takes the shortest time it may take.
//
// The thread that makes the runtime is a task of it, the one that plays a script. All others are begun with Start, and
// must have ended when the runtime is destroyed. If all wait and nobody sleeps, the program is stopped: that is a
// deadlock.

#ifndef PERCOLATOR_TESTS_HISTORIES_VIRTUAL_RUNTIME_H_
#define PERCOLATOR_TESTS_HISTORIES_VIRTUAL_RUNTIME_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class VirtualRuntime final : public Runtime {
 public:
  VirtualRuntime();
  ~VirtualRuntime() override;
  VirtualRuntime(const VirtualRuntime&) = delete;
  VirtualRuntime& operator=(const VirtualRuntime&) = delete;

  // Since it was made.
  Duration Elapsed() override;
  void Sleep(Duration duration) override;
  uint64_t Random() override { return 0; }
  void Start(std::function<void()> body) override;
  std::unique_ptr<WaitQueue> NewWaitQueue() override;

  // Lets the others run until each of them sleeps or waits. No time passes.
  void Settle();

 private:
  struct Task;
  class Queue;
  using Timers = std::map<std::pair<Duration, uint64_t>, Task*>;

  // Gives the turn away until it comes back: when somebody makes the task ready, or at `wake_at`.
  void Block(Queue* queue, std::optional<Duration> wake_at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitTurn(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the task's wait; it will run when those before it have.
  void MakeReady(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Duration now_ ABSL_GUARDED_BY(mutex_){0};
  uint64_t next_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  Timers timers_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task*> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
  Task* current_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_VIRTUAL_RUNTIME_H_
