// SPDX-License-Identifier: Apache-2.0

// A bound on the newest timestamp of every cell. It mostly answers two questions without a search in RocksDB:
//
//   Is there a version at or after ts? Every prewrite asks that, and the answer is almost always no.
//   Which version is the newest? For a cell written since the store was opened, mostly the one at the bound, and a
//     Get of that key is cheaper than a seek, which has to read every file with the cell.
//
// It is an array of timestamps by hash of (family, cell). A bucket is never smaller than the newest timestamp of any
// cell in it: Raise comes before the write. On open, every bucket starts at the largest timestamp of the store
// (max_timestamp.h).
//
// A bucket also has a few bits of the hash of the cell that raised it last, so that another cell in it does not take
// the bound for its own newest timestamp. That leaves 54 bits for the timestamp, enough for every oracle; the largest
// of them stands for all greater ones, and bounds nothing.
//
// The first question is about the time since a transaction began, which is mostly short: few cells were written since.
// So a second array, small enough for a core's cache, nearly always answers it; it has the same bounds, with more cells
// in each.
//
// A bucket also counts the changes of its cells: a cached version is still the newest if the count is the same
// (version_cache.h).

#ifndef PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
#define PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "percolator/spi/store.h"
#include "src/store/rocks/cell_key.h"

namespace percolator {

class NewestSketch {
 public:
  // 16 MiB, and 16 KiB. Cells that collide cost a lookup, and nothing else.
  static constexpr uint32_t kBuckets = 1 << 20;
  static constexpr uint32_t kCoarseBuckets = 1 << 11;

  explicit NewestSketch(Timestamp newest_in_store)
      : at_open_(Word(newest_in_store, 0)), buckets_(MakeBuckets(at_open_)) {
    for (std::atomic<uint64_t>& bound : coarse_) bound.store(Bound(newest_in_store), std::memory_order_relaxed);
  }

  // Called before a version at `ts` is written, under the row's latch.
  void Raise(Family family, const HashedPrefix& cell, Timestamp ts) {
    const uint64_t hash = HashOf(family, cell);
    RaiseTo(Bound(ts), &CoarseOf(hash));
    RaiseTo(Word(ts, hash), &BucketOf(hash).word);
  }

  // Returns false if there is certainly no version at or after `ts`. Called under the row's latch.
  bool MayHaveFrom(Family family, const HashedPrefix& cell, Timestamp ts) const {
    const uint64_t hash = HashOf(family, cell);
    if (CoarseOf(hash).load(std::memory_order_relaxed) < Bound(ts)) {
      __builtin_prefetch(&BucketOf(hash), /*rw=*/1);  // the caller is about to write it
      return false;
    }
    const uint64_t bound = BucketOf(hash).word.load(std::memory_order_relaxed) >> kTagBits;
    return bound >= Bound(ts);
  }

  // Called when the cell has changed, while the latch's count says that the write is under way.
  void CountChange(Family family, const HashedPrefix& cell) {
    BucketOf(HashOf(family, cell)).changes.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t Changes(Family family, const HashedPrefix& cell) const {
    return BucketOf(HashOf(family, cell)).changes.load(std::memory_order_relaxed);
  }

  // Returns a timestamp that no version of the cell is newer than, and that one may well have. Returns nullopt if no
  // guess is worth a try.
  std::optional<Timestamp> LikelyNewest(Family family, const HashedPrefix& cell) const {
    const uint64_t hash = HashOf(family, cell);
    const uint64_t word = BucketOf(hash).word.load(std::memory_order_relaxed);
    const uint64_t bound = word >> kTagBits;
    if (word == at_open_ || bound == kUnbounded || word != Word(Timestamp(bound), hash)) return std::nullopt;
    return Timestamp(bound);
  }

 private:
  static constexpr int kTagBits = 10;
  static constexpr uint64_t kUnbounded = ~uint64_t{0} >> kTagBits;
  static constexpr size_t kLargePage = 2 << 20;

  struct Bucket {
    std::atomic<uint64_t> word;
    std::atomic<uint64_t> changes;
  };
  struct Free {
    void operator()(Bucket* buckets) const { operator delete(buckets, std::align_val_t(kLargePage)); }
  };

  // In large pages, if the system has them: buckets are read at random, and with small pages nearly every read would
  // miss the TLB too.
  static std::unique_ptr<Bucket[], Free> MakeBuckets(uint64_t word) {
    constexpr size_t kBytes = kBuckets * sizeof(Bucket);
    static_assert(kBytes % kLargePage == 0);
    void* const memory = operator new(kBytes, std::align_val_t(kLargePage));
    madvise(memory, kBytes, MADV_HUGEPAGE);  // only a hint: without it, the memory works as well
    auto* const buckets = static_cast<Bucket*>(memory);
    for (uint32_t i = 0; i < kBuckets; ++i) new (buckets + i) Bucket{word, 0};
    return std::unique_ptr<Bucket[], Free>(buckets);
  }

  // The families of a cell fall into different buckets.
  static uint64_t HashOf(Family family, const HashedPrefix& cell) {
    return cell.hash ^ static_cast<uint64_t>(family) * 0x9E3779B97F4A7C15;
  }
  static uint64_t Bound(Timestamp ts) { return std::min(ts.value(), kUnbounded); }
  // Words order by timestamp first. The tag is the top of the hash, the place in the array its bottom.
  static uint64_t Word(Timestamp ts, uint64_t hash) { return Bound(ts) << kTagBits | hash >> (64 - kTagBits); }
  Bucket& BucketOf(uint64_t hash) const { return buckets_[hash & (kBuckets - 1)]; }
  std::atomic<uint64_t>& CoarseOf(uint64_t hash) const { return coarse_[hash >> 32 & (kCoarseBuckets - 1)]; }

  static void RaiseTo(uint64_t bound, std::atomic<uint64_t>* bucket) {
    uint64_t seen = bucket->load(std::memory_order_relaxed);
    while (seen < bound && !bucket->compare_exchange_weak(seen, bound, std::memory_order_relaxed)) {
    }
  }

  const uint64_t at_open_;
  const std::unique_ptr<Bucket[], Free> buckets_;
  mutable std::array<std::atomic<uint64_t>, kCoarseBuckets> coarse_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
