// SPDX-License-Identifier: Apache-2.0

// Detects forked processes. A child of fork() has a copy of its parent's memory, but none of its other threads, and shares
// its open files. An object with threads or files can be neither used nor destroyed in the child, so its owner checks first.

#ifndef PERCOLATOR_BASE_FORK_H_
#define PERCOLATOR_BASE_FORK_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace percolator {

// Constructed together with the object that it protects.
class ForkWatch {
 public:
  ForkWatch();

  // Returns true if this process was forked after this object was constructed. Costs one load.
  bool forked() const { return forks_.load(std::memory_order_relaxed) != made_; }

 private:
  static std::atomic<uint64_t> forks_;  // the number of forks between the first process and this one
  uint64_t made_;
};

// Keeps an object that cannot be destroyed here until the process ends. Thread-safe.
void KeepUntilExit(std::shared_ptr<void> object);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_FORK_H_
