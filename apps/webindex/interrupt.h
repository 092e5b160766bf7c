// Ctrl-C, as a thing to wait for.

#ifndef PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_
#define PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_

#include <chrono>
#include <memory>

namespace webindex {

// The first SIGINT or SIGTERM asks to stop; the second ends the process at once, which loses nothing: the next start goes on.
// REQUIRES: made before any other thread, and once.
class Interrupt {
 public:
  Interrupt();

  bool requested();
  // Returns whether a stop is requested; waits for that, this long at most.
  bool WaitFor(std::chrono::milliseconds time);
  void Wait();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread that waits for signals, to the end of the process
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_
