// SPDX-License-Identifier: Apache-2.0

// The snapshots that are open in this process, transactions included: garbage collection keeps what the oldest of them
// sees. Thread-safe.
//
// A fixed array of slots: a short transaction costs two atomic writes. Further snapshots go into a set.

#ifndef PERCOLATOR_TXN_SNAPSHOT_REGISTRY_H_
#define PERCOLATOR_TXN_SNAPSHOT_REGISTRY_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>

#include "percolator/spi/mutex.h"
#include "percolator/timestamp.h"

namespace percolator {

class SnapshotRegistry {
 public:
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kOverflow = kSlots;  // the "slot" of snapshots in the set

  // Returns the slot to give to Remove.
  size_t Add(Timestamp ts) {
    const size_t home = (ts.value() * 0x9E3779B97F4A7C15) >> 54;
    for (size_t i = 0; i < kTries; ++i) {
      const size_t slot = (home + i) % kSlots;
      uint64_t free = 0;
      if (slots_[slot].compare_exchange_strong(free, ts.value())) return slot;
    }
    MutexLock lock(&mutex_);
    overflow_.insert(ts);
    return kOverflow;
  }

  void Remove(size_t slot, Timestamp ts) {
    if (slot < kSlots) {
      slots_[slot].store(0, std::memory_order_release);
      return;
    }
    MutexLock lock(&mutex_);
    overflow_.erase(overflow_.find(ts));
  }

  // Returns infinity if no snapshot is open.
  Timestamp Oldest() const {
    Timestamp oldest = Timestamp::Infinity();
    for (const std::atomic<uint64_t>& slot : slots_) {
      const uint64_t value = slot.load();
      if (value != 0) oldest = std::min(oldest, Timestamp(value));
    }
    MutexLock lock(&mutex_);
    return overflow_.empty() ? oldest : std::min(oldest, *overflow_.begin());
  }

 private:
  static constexpr size_t kTries = 16;

  std::array<std::atomic<uint64_t>, kSlots> slots_{};
  mutable Mutex mutex_;
  std::multiset<Timestamp> overflow_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_SNAPSHOT_REGISTRY_H_
