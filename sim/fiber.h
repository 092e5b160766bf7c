// Fiber: a function with a stack of its own, which can stop in the middle and go on later, all on one thread.
//
// On x86-64 a switch is a few instructions of our own, elsewhere it is swapcontext. The sanitizers are told of every switch,
// so the same program runs under AddressSanitizer, which would otherwise take the other stack for an overflow, and under
// ThreadSanitizer, which takes each fiber for a thread.
//
// A stack ends in a page that can't be touched: running over the end stops the program, and does not spoil a neighbour.
// Stacks are kept for the next fiber.

#ifndef PERCOLATOR_SIM_FIBER_H_
#define PERCOLATOR_SIM_FIBER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace percolator::sim {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{256} << 10;

  // Runs nothing yet.
  explicit Fiber(std::function<void()> body);
  // A fiber that has not finished is forgotten: nothing on its stack is destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it calls Yield or ends.
  // REQUIRES: it has not ended; the caller is no fiber.
  void Resume();
  // Returns from Resume, until the next one. REQUIRES: called by the body.
  void Yield();
  bool finished() const { return finished_; }

 private:
  struct Context;

  void Run();

  std::function<void()> body_;
  bool finished_ = false;
  std::unique_ptr<Context> context_;  // absent once finished
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_FIBER_H_
