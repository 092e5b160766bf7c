// SPDX-License-Identifier: Apache-2.0

// Runtime: waiting, elapsed time, randomness and tasks.
//
// Runtime, Store, Oracle and Coordinator are the only sources of nondeterminism. On the real
// runtime a task is a thread. In the simulator a task is a fiber, time is virtual and random
// numbers come from the seed, so a run can be repeated exactly.
//
// Never wait while holding a Mutex, except the one passed to WaitQueue::Wait. This holds for waits
// of the runtime and for calls of a Store, Oracle or Coordinator.

#ifndef PERCOLATOR_SPI_RUNTIME_H_
#define PERCOLATOR_SPI_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "percolator/spi/mutex.h"
#include "percolator/types.h"

namespace percolator {

// A condition variable: tasks wait for a change of something that a mutex guards.
class WaitQueue {
 public:
  virtual ~WaitQueue() = default;

  // Releases the mutex, waits, and takes the mutex again. May return without having been woken.
  virtual void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  // Same, but waits at most this long.
  virtual void WaitFor(Mutex* mutex, Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  virtual void WakeOne() = 0;
  virtual void WakeAll() = 0;
};

// Something that happens once. Waiting tasks take no mutex when it happens, so many tasks that are
// woken at the same time do not queue for one, as those of a WaitQueue do.
class Event {
 public:
  virtual ~Event() = default;

  // Wakes all waiting tasks, which then see everything done before the call. Call it once.
  virtual void Set() = 0;
  // Returns after Set was called.
  virtual void Wait() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Returns a monotonic time with an arbitrary origin, for deadlines and backoff.
  virtual Duration Elapsed() = 0;
  virtual void Sleep(Duration duration) = 0;
  // Lets other tasks that are ready run first, if that makes a difference.
  virtual void Yield() {}
  // Returns 64 random bits.
  virtual uint64_t Random() = 0;
  // Runs `task` concurrently with the caller, which must make sure that it ends: the runtime does
  // not wait for it.
  virtual void Start(std::function<void()> task) = 0;
  // Returns a number that identifies the calling task among the running tasks. By default a task is
  // a thread.
  virtual uint64_t CurrentTask();
  virtual std::unique_ptr<WaitQueue> NewWaitQueue() = 0;
  // By default made of a WaitQueue.
  virtual std::unique_ptr<Event> NewEvent();

  // Returns the runtime of threads and the clock of this machine. It lives as long as the process.
  static Runtime* Real();
};

}  // namespace percolator

#endif  // PERCOLATOR_SPI_RUNTIME_H_
