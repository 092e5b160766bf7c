// ListenerSlot: where a coordinator keeps the listener it tells hints to. All methods may be called by any thread.

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

  // Takes the place of the one before, waits for calls of that one under way, and from then on it is not called any more;
  // so it must not be done from within a listener. Null: only takes away.
  void Set(Coordinator::HintListener listener);
  // Calls the listener, if there is one, without a lock held: it may wait, and may send hints itself.
  void Tell(const CellName& cell);

 private:
  struct Listening;

  Runtime* const runtime_;
  Mutex mutex_;
  std::shared_ptr<Listening> listening_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_LISTENER_SLOT_H_
