// SPDX-License-Identifier: Apache-2.0

#include "src/coord/hint_listeners.h"

#include <utility>

namespace percolator {

void HintListeners::Listeners::Tell(const CellName& cell) {
  ReaderLock lock(&mutex);
  for (const auto& [unused, listener] : all) listener(cell);
}

HintListeners::HintListeners(Coordinator* coordinator)
    : coordinator_(coordinator), listeners_(std::make_shared<Listeners>()) {}

HintListeners::~HintListeners() {
  bool listening = false;
  {
    ReaderLock lock(&listeners_->mutex);
    listening = listeners_->listening;
  }
  if (listening) coordinator_->SetHintListener(nullptr);
}

// Sets the coordinator's listener when the first listener is added, so that an object without listeners replaces no other.
uint64_t HintListeners::Add(Coordinator::HintListener listener) {
  uint64_t id = 0;
  bool is_first = false;
  {
    WriterLock lock(&listeners_->mutex);
    id = listeners_->next++;
    listeners_->all.emplace(id, std::move(listener));
    is_first = !std::exchange(listeners_->listening, true);
  }
  if (is_first) {
    coordinator_->SetHintListener([listeners = listeners_](const CellName& cell) { listeners->Tell(cell); });
  }
  return id;
}

void HintListeners::Tell(const CellName& cell) {
  listeners_->Tell(cell);
  coordinator_->SendHint(cell);
}

void HintListeners::Remove(uint64_t listener) {
  Coordinator::HintListener last;  // destroyed after the mutex is released, with everything that it owns
  WriterLock lock(&listeners_->mutex);
  const auto it = listeners_->all.find(listener);
  if (it == listeners_->all.end()) return;
  last = std::move(it->second);
  listeners_->all.erase(it);
}

}  // namespace percolator
