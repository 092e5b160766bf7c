// Row latches: what makes a conditional row mutation one atomic step.
//
// A row's latch is one of a fixed number of stripes, chosen by hash; two rows may share one, which costs
// waiting and never correctness. A writer holds the latches of its rows from the first look at a condition
// until the write is in RocksDB. Stripes are locked in ascending order, so writers of several rows can't
// deadlock.
//
// Readers do not take latches: one fsync would make them wait for milliseconds. Each stripe counts the writes
// that begin and end under it instead (odd while one is under way). A reader that finds the count even and
// unchanged around what it read has seen no write half done (StableSince); else it reads again under a
// RocksDB snapshot.

#ifndef PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_
#define PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"

namespace percolator {

class LatchTable {
 public:
  // A million random pairs of rows would meet in about 60 of them.
  static constexpr uint32_t kStripes = 1 << 14;

  LatchTable()
      : mutexes_(std::make_unique<std::mutex[]>(kStripes)),
        versions_(std::make_unique<std::atomic<uint64_t>[]>(kStripes)) {}

  static uint32_t StripeOf(std::string_view row_prefix) {
    return static_cast<uint32_t>(absl::HashOf(row_prefix)) & (kStripes - 1);
  }

  // The count to give to StableSince, or an odd number: a write is under way.
  uint64_t Version(uint32_t stripe) const { return versions_[stripe].load(std::memory_order_acquire); }

  // Whether no write began or ended under the stripe since Version returned `version`.
  bool StableSince(uint32_t stripe, uint64_t version) const {
    // An addition of zero, not a load: it can't move before the reads it judges, and it sees the newest
    // count.
    return versions_[stripe].fetch_add(0, std::memory_order_acq_rel) == version;
  }

  // Holds a set of stripes.
  class Guard {
   public:
    Guard(LatchTable* table, std::vector<uint32_t> stripes) : table_(table), stripes_(std::move(stripes)) {
      std::sort(stripes_.begin(), stripes_.end());
      stripes_.erase(std::unique(stripes_.begin(), stripes_.end()), stripes_.end());
      for (uint32_t s : stripes_) table_->mutexes_[s].lock();
    }
    ~Guard() {
      for (uint32_t s : stripes_) table_->mutexes_[s].unlock();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    // Around the change itself: readers that overlap it will notice.
    void BeginWrite() { Count(); }
    void EndWrite() { Count(); }

   private:
    void Count() {
      for (uint32_t s : stripes_) table_->versions_[s].fetch_add(1, std::memory_order_acq_rel);
    }

    LatchTable* const table_;
    std::vector<uint32_t> stripes_;
  };

 private:
  const std::unique_ptr<std::mutex[]> mutexes_;
  // Apart from the mutexes, because every reader looks here: 128 KiB stay in a core's cache.
  const std::unique_ptr<std::atomic<uint64_t>[]> versions_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_
