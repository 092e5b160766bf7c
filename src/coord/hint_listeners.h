// HintListeners: hands the hints that a process gets to all who want them. A Coordinator has one listener; a process may have
// several workers.

#ifndef PERCOLATOR_COORD_HINT_LISTENERS_H_
#define PERCOLATOR_COORD_HINT_LISTENERS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"

namespace percolator {

class HintListeners {
 public:
  // The coordinator must outlive this.
  explicit HintListeners(Coordinator* coordinator);
  ~HintListeners();
  HintListeners(const HintListeners&) = delete;
  HintListeners& operator=(const HintListeners&) = delete;

  // From now on `listener` is called for every hint, perhaps by the thread that commits: it must be quick and must not wait.
  // Returns what to call Remove with.
  uint64_t Add(Coordinator::HintListener listener);
  // From now on it is called no more. Waits for calls under way.
  void Remove(uint64_t listener);
  // Calls all listeners here, and sends the hint to the other processes too.
  void Tell(const CellName& cell);

 private:
  // The coordinator may call late, when this is gone.
  struct Listeners {
    void Tell(const CellName& cell);

    SharedMutex mutex;
    uint64_t next ABSL_GUARDED_BY(mutex) = 1;
    bool listening ABSL_GUARDED_BY(mutex) = false;  // to the coordinator
    std::map<uint64_t, Coordinator::HintListener> all ABSL_GUARDED_BY(mutex);
  };

  Coordinator* const coordinator_;
  const std::shared_ptr<Listeners> listeners_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_HINT_LISTENERS_H_
