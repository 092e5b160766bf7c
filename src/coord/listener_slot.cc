// SPDX-License-Identifier: Apache-2.0

#include "src/coord/listener_slot.h"

#include <utility>

namespace percolator {

// A listener and the number of its calls in progress.
struct ListenerSlot::Listening {
  Listening(Coordinator::HintListener to, Runtime* runtime) : listener(std::move(to)), idle(runtime->NewWaitQueue()) {}

  const Coordinator::HintListener listener;
  int calls = 0;                    // guarded by mutex_
  std::unique_ptr<WaitQueue> idle;  // woken when `calls` becomes zero
};

void ListenerSlot::Tell(const CellName& cell) {
  std::shared_ptr<Listening> listening;
  {
    MutexLock lock(&mutex_);
    if (listening_ == nullptr) return;
    listening = listening_;
    ++listening->calls;
  }
  listening->listener(cell);
  MutexLock lock(&mutex_);
  if (--listening->calls == 0) listening->idle->WakeAll();
}

void ListenerSlot::Set(Coordinator::HintListener listener) {
  std::shared_ptr<Listening> next;
  if (listener != nullptr) next = std::make_shared<Listening>(std::move(listener), runtime_);
  std::shared_ptr<Listening> former;  // destroyed after the mutex is released, with everything that its listener owns
  MutexLock lock(&mutex_);
  former = std::exchange(listening_, std::move(next));
  while (former != nullptr && former->calls > 0) former->idle->Wait(&mutex_);
}

}  // namespace percolator
