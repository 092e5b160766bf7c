// Parallel: several blocking calls side by side.

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
  // At most so many threads, made when they are first needed.
  explicit Parallel(size_t threads);
  // REQUIRES: no ForEach is running.
  ~Parallel();

  // Calls work(0) ... work(count - 1), each once, by the caller and whichever threads are free, and returns when all are
  // done. So a lone piece of work is done by the caller, and those of several callers don't wait for each other.
  void ForEach(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Batch {
    const std::function<void(size_t)>* work = nullptr;
    size_t count = 0;
    size_t next = 0;     // the first that nobody has begun
    size_t running = 0;  // begun and not done
  };

  // Does the next of a batch that has one.
  void DoNext(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();

  const size_t most_threads_;
  Mutex mutex_;
  std::deque<Batch*> batches_ ABSL_GUARDED_BY(mutex_);  // which have more to begin
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> more_;  // to begin, or the end
  const std::unique_ptr<WaitQueue> done_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_PARALLEL_H_
