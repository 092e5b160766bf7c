// SPDX-License-Identifier: Apache-2.0

// Parallel: runs several blocking calls at the same time.

#ifndef PERCOLATOR_STORE_BIGTABLE_PARALLEL_H_
#define PERCOLATOR_STORE_BIGTABLE_PARALLEL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class Parallel {
 public:
  // Uses at most `threads` threads, started when they are first needed.
  explicit Parallel(size_t threads);
  // REQUIRES: no ForEach is running.
  ~Parallel();

  // Calls work(0) ... work(count - 1), each once, on the caller's thread and on free threads, and returns when all are
  // done. So a single piece of work runs on the caller's thread, and callers do not wait for each other's work.
  void ForEach(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Batch {
    const std::function<void(size_t)>* work = nullptr;
    size_t count = 0;
    size_t next = 0;     // the first that has not begun
    size_t running = 0;  // begun, but not done
  };

  // Does the next piece of a batch that has one.
  void DoNext(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();

  const size_t max_threads_;
  Mutex mutex_;
  std::deque<Batch*> batches_ ABSL_GUARDED_BY(mutex_);  // batches with work that has not begun
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> more_;  // signals more work, or the end
  const std::unique_ptr<WaitQueue> done_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_PARALLEL_H_
