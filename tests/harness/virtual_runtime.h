// SPDX-License-Identifier: Apache-2.0

// VirtualRuntime: a Runtime on which no task really waits, and every run is the same.
//
// Tasks are threads, and exactly one of them runs at any moment. A task runs until it sleeps, waits or ends; then the
// task that became ready first runs. Time stands still while a task is ready. When all wait, time jumps to the moment
// at which the first sleeper wakes. So a test decides the order of events, and a lease of ten seconds passes at once.
// Because tasks are threads, sanitizers work as usual.
//
// The thread that makes the runtime is its first task, usually the one that runs the test. The others are begun with
// Start and must have ended, or be about to end, when the runtime is destroyed. If all tasks wait and none of them
// sleeps, the program ends with a message, because that is a deadlock.

#ifndef PERCOLATOR_TESTS_HARNESS_VIRTUAL_RUNTIME_H_
#define PERCOLATOR_TESTS_HARNESS_VIRTUAL_RUNTIME_H_

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
  // Random returns a sequence that starts from `seed`. With seed 0 it always returns 0, so that random waits are as
  // short as possible.
  explicit VirtualRuntime(uint64_t seed = 1);
  // Waits for the other tasks. REQUIRES: the calling thread made the runtime, and every other task can end.
  ~VirtualRuntime() override;
  VirtualRuntime(const VirtualRuntime&) = delete;
  VirtualRuntime& operator=(const VirtualRuntime&) = delete;

  // The time since the runtime was made.
  Duration Elapsed() override;
  void Sleep(Duration duration) override;
  uint64_t Random() override;
  void Start(std::function<void()> body) override;
  std::unique_ptr<WaitQueue> NewWaitQueue() override;

  // Lets the other tasks run until each of them waits. No time passes.
  void LetOthersRun();
  // The number of calls of Sleep, and the sum of their durations.
  int sleeps() const;
  Duration slept() const;

 private:
  struct Task;
  class Queue;
  using Timers = std::map<std::pair<Duration, uint64_t>, Task*>;

  void Run(Task* task, const std::function<void()>& body);
  // Ends the program unless the calling thread is the running task.
  void CheckTurn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes the turn on and waits to get it back: when another task makes this one ready, or at `wake_at`.
  void Block(Queue* queue, std::optional<Duration> wake_at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitTurn(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the task's wait; it runs after the tasks that became ready before.
  void MakeReady(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Duration now_ ABSL_GUARDED_BY(mutex_){0};
  uint64_t random_ ABSL_GUARDED_BY(mutex_);
  int sleeps_ ABSL_GUARDED_BY(mutex_) = 0;
  Duration slept_ ABSL_GUARDED_BY(mutex_){0};
  uint64_t next_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  Timers timers_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task*> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
  Task* current_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_VIRTUAL_RUNTIME_H_
