// SPDX-License-Identifier: Apache-2.0

// ListenerSlot: holds the listener of a coordinator. Thread-safe.

#ifndef PERCOLATOR_COORD_LISTENER_SLOT_H_
#define PERCOLATOR_COORD_LISTENER_SLOT_H_

#include <memory>

#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class ListenerSlot {
 public:
  explicit ListenerSlot(Runtime* runtime) : runtime_(runtime) {}

  // Replaces the listener; null only removes it. Waits for calls in progress of the former listener, which is not called
  // after that. REQUIRES: not called by a listener.
  void Set(Coordinator::HintListener listener);
  // Calls the listener, if there is one. It holds no lock, so the listener may wait and may send hints.
  void Tell(const CellName& cell);

 private:
  struct Listening;

  Runtime* const runtime_;
  Mutex mutex_;
  std::shared_ptr<Listening> listening_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_LISTENER_SLOT_H_
