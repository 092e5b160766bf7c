// SPDX-License-Identifier: Apache-2.0

// Executor: threads for work that blocks, so that gRPC's few threads never block, and the memory limits of that work.
//
// Heavy work, such as pages of streams and large requests, has a queue and threads of its own. These are few and have a lower
// priority, so that clients with small requests keep most of the processors.

#ifndef PERCOLATOR_SERVER_EXECUTOR_H_
#define PERCOLATOR_SERVER_EXECUTOR_H_

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/server/requests.h"
#include "src/server/unsent.h"

namespace percolator {

// Memory limits in bytes (percolator/server.h).
struct CallMemory {
  size_t request = size_t{80} << 20;
  size_t requests = size_t{256} << 20;
  size_t unsent = size_t{256} << 20;
  size_t unsent_of_connection = size_t{128} << 20;
};

// Thread-safe.
class Executor {
 public:
  using Task = std::function<void()>;

  enum Lane { kLight, kHeavy };

  // `threads` are for light work. In each lane, at most `max_waiting` tasks of TryRun wait for a thread.
  Executor(int threads, size_t max_waiting, const CallMemory& memory = {});
  // Runs the tasks that still wait.
  ~Executor();

  // Queues a task for the threads. Returns false, and drops the task, if too many tasks are waiting.
  [[nodiscard]] bool TryRun(Task task, Lane lane = kLight);
  // Queues a task that continues an admitted task. It is never refused, because there are at most as many as admitted tasks.
  void Run(Task task, Lane lane = kLight);

  // Returns the error for a task that TryRun refused.
  absl::Status TooBusy() const;

  size_t request_bytes() const { return memory_.request; }
  RequestMemory* requests() { return &requests_; }
  UnsentAnswers* unsent() { return &unsent_; }

 private:
  struct Queue {
    std::deque<Task> tasks;
    std::unique_ptr<WaitQueue> changed = Runtime::Real()->NewWaitQueue();
  };

  void Work(Lane lane);

  const size_t max_waiting_;
  const CallMemory memory_;
  RequestMemory requests_;
  UnsentAnswers unsent_;
  Mutex mutex_;
  std::array<Queue, 2> queues_ ABSL_GUARDED_BY(mutex_);  // by lane
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_EXECUTOR_H_
