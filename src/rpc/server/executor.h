// Executor: threads for work that blocks, so that the few threads which gRPC calls us on never do.

#ifndef PERCOLATOR_RPC_SERVER_EXECUTOR_H_
#define PERCOLATOR_RPC_SERVER_EXECUTOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/mutex.h"
#include "src/base/runtime.h"

namespace percolator {

class Executor {
 public:
  using Task = std::function<void()>;

  explicit Executor(int threads);
  // Does what is still waiting.
  ~Executor();

  // Has it done, soon, by one of the threads.
  void Run(Task task);

 private:
  void Work();

  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> changed_;
  std::vector<std::thread> threads_;
};

}  // namespace percolator

#endif  // PERCOLATOR_RPC_SERVER_EXECUTOR_H_
