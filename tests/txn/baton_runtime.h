// A Runtime on which tests are exact: real threads of which one runs at a time, and time that is not real.
//
// Whoever runs holds the baton, and gives it away only when it waits: in Sleep, in WaitQueue::Wait, at its end. Then the
// task that became ready first runs. When all wait, time moves on to the first of those that wait for it; nobody ever
// waits for real. So a test decides what happens in which order, a lease of ten seconds passes in no time, and every run
// is the same. Since tasks are threads, the sanitizers see them as they are.
//
// The thread that makes the runtime is its first task. When everybody waits and nobody waits for time, the test is stuck
// and the program ends with a message.

#ifndef PERCOLATOR_TESTS_TXN_BATON_RUNTIME_H_
#define PERCOLATOR_TESTS_TXN_BATON_RUNTIME_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class BatonRuntime : public Runtime {
 public:
  BatonRuntime();
  // REQUIRES: the calling thread made it, and all tasks it started have been told to end. Waits for them.
  ~BatonRuntime() override;

  Duration Elapsed() override;
  void Sleep(Duration duration) override;
  uint64_t Random() override;
  void Start(std::function<void()> run) override;
  std::unique_ptr<WaitQueue> NewWaitQueue() override;

  // Lets all others run until each of them waits. Time stands still.
  void LetOthersRun();
  // How often somebody slept, and for how long together.
  int sleeps() const;
  Duration slept() const;

 private:
  class Queue;
  struct Task {
    std::thread thread;  // not of the first task
    CondVar given;       // the baton may be this task's now
    bool waits_for_time = false;
    Duration wake_at{};
    bool ended = false;
  };

  Task* Current() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the baton away; returns when it is back.
  void Park(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveToNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(Task* task, const std::function<void()>& run);

  mutable Mutex mutex_;
  Duration now_ ABSL_GUARDED_BY(mutex_){};
  uint64_t random_ ABSL_GUARDED_BY(mutex_) = 1;
  int sleeps_ ABSL_GUARDED_BY(mutex_) = 0;
  Duration slept_ ABSL_GUARDED_BY(mutex_){};
  std::list<Task> tasks_ ABSL_GUARDED_BY(mutex_);  // in the order of their start, the maker's first
  std::map<std::thread::id, Task*> by_thread_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task*> ready_ ABSL_GUARDED_BY(mutex_);
  Task* holder_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TXN_BATON_RUNTIME_H_
