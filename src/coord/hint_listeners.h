// SPDX-License-Identifier: Apache-2.0

// HintListeners: passes the hints that a process receives to several listeners. A Coordinator has one listener, a process may
// have several workers.

#ifndef PERCOLATOR_COORD_HINT_LISTENERS_H_
#define PERCOLATOR_COORD_HINT_LISTENERS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"

namespace percolator {

// Thread-safe.
class HintListeners {
 public:
  // REQUIRES: `coordinator` outlives this object.
  explicit HintListeners(Coordinator* coordinator);
  ~HintListeners();
  HintListeners(const HintListeners&) = delete;
  HintListeners& operator=(const HintListeners&) = delete;

  // Calls `listener` for every later hint, possibly in the thread that commits: it must be quick and must not wait.
  // Returns the argument for Remove.
  uint64_t Add(Coordinator::HintListener listener);
  // Removes a listener. Waits for its calls in progress.
  void Remove(uint64_t listener);
  // Calls all listeners of this process, and sends the hint to the other processes.
  void Tell(const CellName& cell);

 private:
  // Shared with the coordinator, which may call after this object is destroyed.
  struct Listeners {
    void Tell(const CellName& cell);

    SharedMutex mutex;
    uint64_t next ABSL_GUARDED_BY(mutex) = 1;
    bool listening ABSL_GUARDED_BY(mutex) = false;  // The coordinator has a listener of this object.
    std::map<uint64_t, Coordinator::HintListener> all ABSL_GUARDED_BY(mutex);
  };

  Coordinator* const coordinator_;
  const std::shared_ptr<Listeners> listeners_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_HINT_LISTENERS_H_
