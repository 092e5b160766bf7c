// Runtime: where library code waits, learns how much time has passed, draws chance and starts tasks.
//
// Together with Store, Oracle and Coordinator it is all that makes two runs differ. On the real one a task is a thread;
// in the simulator it is a fiber, time is virtual and chance comes from the seed, so that a run can be repeated exactly.
//
// A wait of any kind (of this runtime, or a call of a Store, Oracle or Coordinator) is made without holding a Mutex,
// except the one given to WaitQueue::Wait.

#ifndef PERCOLATOR_BASE_RUNTIME_H_
#define PERCOLATOR_BASE_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "percolator/options.h"
#include "src/base/mutex.h"

namespace percolator {

// Tasks that wait for something guarded by a mutex to change: a condition variable.
class WaitQueue {
 public:
  virtual ~WaitQueue() = default;

  // Releases the mutex, waits to be woken (or for no reason at all), takes the mutex again.
  virtual void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  // The same, for this long at most.
  virtual void WaitFor(Mutex* mutex, Duration at_most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  virtual void WakeOne() = 0;
  virtual void WakeAll() = 0;
};

// Something that happens once. Whoever waits for it takes no mutex when it has: so many who are woken at once do not have
// to queue up for one, which is what a WaitQueue lets them do.
class Event {
 public:
  virtual ~Event() = default;

  // It has happened: all who wait go on. What was done before is seen by them. Once only.
  virtual void Set() = 0;
  // Returns when it has happened.
  virtual void Wait() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Time that only goes forward, from an arbitrary beginning: for deadlines and backoff.
  virtual Duration Elapsed() = 0;
  virtual void Sleep(Duration duration) = 0;
  // Lets others go first who are ready to run, where that makes a difference.
  virtual void Yield() {}
  // Any 64 bits.
  virtual uint64_t Random() = 0;
  // Runs `task` beside the caller. Whoever starts a task sees to its end: nothing here waits for it.
  virtual void Start(std::function<void()> task) = 0;
  // Identifies the calling task: two tasks that run at the same time have different numbers. Unless a runtime knows better,
  // a task is a thread.
  virtual uint64_t CurrentTask();
  virtual std::unique_ptr<WaitQueue> NewWaitQueue() = 0;
  // Unless a runtime knows better, one that is made of a WaitQueue.
  virtual std::unique_ptr<Event> NewEvent();

  // Threads and the clock of this machine. Lives as long as the process.
  static Runtime* Real();
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_RUNTIME_H_
