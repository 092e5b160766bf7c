// SPDX-License-Identifier: Apache-2.0

// Fiber: a function with a stack of its own, which can stop in the middle and continue later, all on one thread.
//
// On x86-64 a switch is a few instructions of our own, elsewhere it is swapcontext. The sanitizers are notified of
// every switch. Otherwise AddressSanitizer would report the other stack as an overflow. For ThreadSanitizer each fiber
// is a thread.
//
// A stack ends at an inaccessible page: an overflow stops the program instead of overwriting other memory. Stacks are
// reused.

#ifndef PERCOLATOR_SIM_FIBER_H_
#define PERCOLATOR_SIM_FIBER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace percolator::sim {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{256} << 10;

  // Does not run the body yet.
  explicit Fiber(std::function<void()> body);
  // Drops a fiber that has not finished: objects on its stack are not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it calls Yield or ends. REQUIRES: it has not ended; the caller is not a fiber.
  void Resume();
  // Returns from Resume, and continues at the next Resume. REQUIRES: called by the body.
  void Yield();
  bool finished() const { return finished_; }

 private:
  struct Context;

  void Run();

  std::function<void()> body_;
  bool finished_ = false;
  std::unique_ptr<Context> context_;  // null after the fiber has finished
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_FIBER_H_
