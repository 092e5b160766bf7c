// Executor: threads for work that blocks, so that the few threads which gRPC calls us on never do; and the memory for it.

#ifndef PERCOLATOR_SERVER_EXECUTOR_H_
#define PERCOLATOR_SERVER_EXECUTOR_H_

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

// Limits, in bytes (percolator/server.h).
struct CallMemory {
  size_t request = size_t{80} << 20;
  size_t requests = size_t{256} << 20;
  size_t unsent = size_t{256} << 20;
  size_t unsent_of_connection = size_t{128} << 20;
};

class Executor {
 public:
  using Task = std::function<void()>;

  // So many tasks at most wait for one of so many threads.
  Executor(int threads, size_t most_waiting, const CallMemory& memory = {});
  // Does what is still waiting.
  ~Executor();

  // Has a task done, soon, by one of the threads. False: too many wait, and it is dropped.
  [[nodiscard]] bool TryRun(Task task);
  // The same for one that goes on with what was begun: it is never refused, as there are no more of these than were begun.
  void Run(Task task);

  // The error of whoever is refused.
  absl::Status TooBusy() const;

  size_t request_bytes() const { return memory_.request; }
  RequestMemory* requests() { return &requests_; }
  UnsentAnswers* unsent() { return &unsent_; }

 private:
  void Work();

  const size_t most_waiting_;
  const CallMemory memory_;
  RequestMemory requests_;
  UnsentAnswers unsent_;
  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> changed_;
  std::vector<std::thread> threads_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_EXECUTOR_H_
