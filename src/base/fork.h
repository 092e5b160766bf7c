// Forked processes. A child of fork() has the memory of its parent, but not its threads, and shares its open files. What
// has threads or files can't be used there, or even destroyed: its owner asks here, and leaves it alone.

#ifndef PERCOLATOR_BASE_FORK_H_
#define PERCOLATOR_BASE_FORK_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace percolator {

// Made with what it watches over.
class ForkWatch {
 public:
  ForkWatch();

  // Whether this process is a child of the one that made this object, by fork(). Costs one load.
  bool forked() const { return forks_.load(std::memory_order_relaxed) != made_; }

 private:
  static std::atomic<uint64_t> forks_;  // between the first process and this one
  uint64_t made_;
};

// Keeps an object until the process ends, because it cannot be destroyed here. Thread-safe.
void KeepUntilExit(std::shared_ptr<void> object);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_FORK_H_
