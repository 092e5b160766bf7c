// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/latch_table.h"

#include <algorithm>
#include <utility>

namespace percolator {

LatchTable::Stripes LatchTable::EveryStripe() {
  Stripes stripes(kStripes);
  for (uint32_t s = 0; s < kStripes; ++s) stripes[s] = s;
  return stripes;
}

LatchTable::Guard::Guard(LatchTable* table, Stripes stripes) : table_(table), stripes_(std::move(stripes)) {
  if (stripes_.size() > 1) {
    std::sort(stripes_.begin(), stripes_.end());
    stripes_.erase(std::unique(stripes_.begin(), stripes_.end()), stripes_.end());
  }
  for (uint32_t s : stripes_) table_->Take(s);
}

void LatchTable::Guard::Release() {
  for (uint32_t s : stripes_) table_->Release(s);
  stripes_.clear();
}

// A thread that learns of anything done after this sees the new count: hence the strongest order.
void LatchTable::Guard::Add(uint64_t bits) {
  for (uint32_t s : stripes_) table_->words_[s].fetch_add(bits, std::memory_order_seq_cst);
}

void LatchTable::PassThrough() {
  for (uint32_t s = 0; s < kStripes; ++s) {
    Take(s);
    Release(s);
  }
}

bool LatchTable::Await(uint32_t stripe) {
  uint64_t word = words_[stripe].load(std::memory_order_relaxed);
  while ((word & kHeld) != 0) {
    if (words_[stripe].compare_exchange_weak(word, word | kAwaited, std::memory_order_relaxed)) return true;
  }
  return false;
}

void LatchTable::Sleep(Lot* lot, Waiter* waiter) {
  while (!waiter->woken) waiter->wake.Wait(&lot->mutex);
  waiter->woken = false;
}

void LatchTable::Leave(Lot* lot, const Waiter* waiter) { std::erase(lot->waiters, waiter); }

void LatchTable::WaitAndTake(uint32_t stripe) {
  Lot& lot = lots_[stripe % kLots];
  MutexLock lock(&lot.mutex);
  Waiter waiter{stripe, /*wants_latch=*/true};
  lot.waiters.push_back(&waiter);
  while (true) {
    if (Await(stripe)) {
      Sleep(&lot, &waiter);
      if (waiter.granted) return;
      ++waiter.turns_lost;
    } else {
      uint64_t word = words_[stripe].load(std::memory_order_relaxed);
      if ((word & kHeld) != 0) continue;
      if (words_[stripe].compare_exchange_strong(word, word | kHeld, std::memory_order_acquire)) break;
    }
  }
  Leave(&lot, &waiter);
}

bool LatchTable::WaitUntilOpen(uint32_t stripe) {
  Lot& lot = lots_[stripe % kLots];
  MutexLock lock(&lot.mutex);
  const uint64_t closed = Count(stripe);
  if (!IsClosed(closed)) return true;
  Waiter waiter{stripe, /*wants_latch=*/false};
  lot.waiters.push_back(&waiter);
  // Closed and held: under way. Closed and not held: abandoned. Another count: that write has ended and opened it.
  while (Count(stripe) == closed && Await(stripe)) Sleep(&lot, &waiter);
  Leave(&lot, &waiter);
  return Count(stripe) != closed;
}

// Wakes the readers, and the first thread that wants the latch. A woken thread that has to wait on marks the stripe
// again.
void LatchTable::ReleaseAndWake(uint32_t stripe) {
  Lot& lot = lots_[stripe % kLots];
  MutexLock lock(&lot.mutex);
  Waiter* next = nullptr;
  uint64_t cleared = kHeld | kAwaited;
  for (Waiter* waiter : lot.waiters) {
    if (waiter->stripe != stripe) continue;
    if (waiter->wants_latch && next != nullptr) {
      cleared = kHeld;
      continue;
    }
    if (waiter->wants_latch) next = waiter;
    waiter->woken = true;
    waiter->wake.NotifyOne();
  }
  if (next != nullptr && next->turns_lost >= kMaxTurnsLost) {
    next->granted = true;
    Leave(&lot, next);
    return;  // the stripe stays held, now by `next`
  }
  words_[stripe].fetch_and(~cleared, std::memory_order_release);
}

}  // namespace percolator
