// SPDX-License-Identifier: Apache-2.0

#include "src/txn/turns.h"

#include <algorithm>

#include "src/base/check.h"

namespace percolator {

void Turns::Turn::Wait(const CellName& cell, Duration run, const Deadline& deadline) {
  PERCOLATOR_DCHECK(!granted());
  const std::unique_ptr<WaitQueue> own = turns_->runtime_->NewWaitQueue();
  const MutexLock lock(&turns_->mutex_);
  Queue* const queue = turns_->Join(cell, own.get());
  uint64_t commits = queue->commits;
  for (;;) {
    const Duration now = turns_->runtime_->Elapsed();
    const bool first = queue->waiting.front() == own.get();
    const bool is_free = queue->holder == nullptr || now >= queue->holds_until;
    if (first && is_free && (queue->commits == commits || now >= queue->granted_at + kSlice)) {
      ++queue->turns;
      queue->holder = this;
      queue->granted_at = now;
      queue->holds_until = now + std::clamp(2 * run, kSlice, kMaxTurn);
      queue_ = queue;
      break;
    }
    if (deadline.passed() || *turns_->closed_) break;
    commits = queue->commits;
    own->WaitFor(&turns_->mutex_, std::min(deadline.left(), first ? kLook : kLookBehind));
  }
  turns_->Leave(queue, own.get());
}

void Turns::Turn::End() {
  if (!granted()) return;
  const MutexLock lock(&turns_->mutex_);
  --queue_->turns;
  if (queue_->holder == this) queue_->holder = nullptr;
  turns_->PassOn(queue_);
  queue_ = nullptr;
}

template <typename Visit>
void Turns::VisitQueues(const WriteBuffer::Cells& cells, const Visit& visit) {
  if (cells.size() < queues_.size()) {
    for (const auto& [cell, write] : cells) {
      const auto found = queues_.find(cell);
      if (found != queues_.end() && !visit(&found->second)) return;
    }
  } else {
    for (auto& [cell, queue] : queues_) {
      if (cells.contains(cell) && !visit(&queue)) return;
    }
  }
}

std::optional<CellName> Turns::FindTaken(const WriteBuffer::Cells& cells) {
  std::optional<CellName> taken;
  const MutexLock lock(&mutex_);
  VisitQueues(cells, [&](Queue* queue) {
    if (queue->holder != nullptr && runtime_->Elapsed() < queue->holds_until) taken = *queue->cell;
    return !taken.has_value();
  });
  return taken;
}

void Turns::NoteCommit(const WriteBuffer::Cells& cells) {
  const MutexLock lock(&mutex_);
  VisitQueues(cells, [](Queue* queue) {
    ++queue->commits;
    return true;
  });
}

Turns::Queue* Turns::Join(const CellName& cell, WaitQueue* own) {
  const auto [place, is_new] = queues_.try_emplace(cell);
  busy_ = true;
  if (is_new) place->second.cell = &place->first;
  place->second.waiting.push_back(own);
  return &place->second;
}

void Turns::Leave(Queue* queue, WaitQueue* own) {
  std::erase(queue->waiting, own);
  PassOn(queue);
}

void Turns::PassOn(Queue* queue) {
  if (!queue->waiting.empty()) {
    queue->waiting.front()->WakeOne();
  } else if (queue->turns == 0) {
    queues_.erase(*queue->cell);
    busy_ = !queues_.empty();
  }
}

}  // namespace percolator
