// SPDX-License-Identifier: Apache-2.0

// Interrupt: waits for Ctrl-C.

#ifndef PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_
#define PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_

#include <chrono>
#include <memory>

namespace webindex {

// The first SIGINT or SIGTERM requests a stop. The second ends the process immediately, which loses nothing, because the next
// start continues. REQUIRES: constructed once, before the process starts any thread.
class Interrupt {
 public:
  Interrupt();

  bool requested();
  // Waits up to this long for a stop request. Returns true if there is one.
  bool WaitFor(std::chrono::milliseconds time);
  void Wait();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the signal thread, which lives as long as the process
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_INTERRUPT_H_
