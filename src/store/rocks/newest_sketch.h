// A bound on the newest timestamp of every cell. It answers two questions mostly without a search in RocksDB:
//
//   Is there a version at or after ts? Every prewrite asks that, and the answer is almost always no.
//   Which version is the newest? For a cell written since the store was opened, mostly the one at the bound
//   itself, and a Get of that key is cheaper than a seek, which has to look into every file with the cell.
//
// An array of timestamps by hash of (family, cell). A bucket is never smaller than the newest timestamp ever
// written to any cell that falls into it: Raise comes before the write. On open every bucket starts at the
// largest timestamp anywhere in the store (see max_timestamp.h).

#ifndef PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
#define PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/hash/hash.h"
#include "percolator/store.h"

namespace percolator {

class NewestSketch {
 public:
  // 8 MiB. Cells that collide only cost a look.
  static constexpr uint32_t kBuckets = 1 << 20;

  explicit NewestSketch(Timestamp newest_in_store)
      : at_open_(newest_in_store.value()), buckets_(std::make_unique<std::atomic<uint64_t>[]>(kBuckets)) {
    for (uint32_t i = 0; i < kBuckets; ++i) {
      buckets_[i].store(newest_in_store.value(), std::memory_order_relaxed);
    }
  }

  // To be called before a version at `ts` is written, under the row's latch.
  void Raise(Family family, std::string_view cell_prefix, Timestamp ts) {
    std::atomic<uint64_t>& bucket = BucketOf(family, cell_prefix);
    uint64_t seen = bucket.load(std::memory_order_relaxed);
    while (seen < ts.value() && !bucket.compare_exchange_weak(seen, ts.value(), std::memory_order_relaxed)) {
    }
  }

  // False: certainly no version at or after `ts`. Under the row's latch.
  bool MayHaveFrom(Family family, std::string_view cell_prefix, Timestamp ts) const {
    return BucketOf(family, cell_prefix).load(std::memory_order_relaxed) >= ts.value();
  }

  // No version of the cell is newer than this, and there may well be one just at it. Absent: nothing is known
  // that is worth a try.
  std::optional<Timestamp> LikelyNewest(Family family, std::string_view cell_prefix) const {
    const uint64_t bound = BucketOf(family, cell_prefix).load(std::memory_order_relaxed);
    return bound == at_open_ ? std::nullopt : std::optional(Timestamp(bound));
  }

 private:
  std::atomic<uint64_t>& BucketOf(Family family, std::string_view cell_prefix) const {
    return buckets_[absl::HashOf(family, cell_prefix) & (kBuckets - 1)];
  }

  const uint64_t at_open_;
  const std::unique_ptr<std::atomic<uint64_t>[]> buckets_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
