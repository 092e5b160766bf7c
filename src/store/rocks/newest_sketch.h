// A bound on the newest timestamp of every cell. It answers two questions mostly without a search in RocksDB:
//
//   Is there a version at or after ts? Every prewrite asks that, and the answer is almost always no.
//   Which version is the newest? For a cell written since the store was opened, mostly the one at the bound
//   itself, and a Get of that key is cheaper than a seek, which has to look into every file with the cell.
//
// An array of timestamps by hash of (family, cell). A bucket is never smaller than the newest timestamp ever
// written to any cell that falls into it: Raise comes before the write. On open every bucket starts at the
// largest timestamp anywhere in the store (see max_timestamp.h).
//
// A bucket also has a few bits of the hash of the cell that raised it last, so that another cell in it does not
// take the bound for its own newest timestamp. That leaves 54 bits for the timestamp, enough for every oracle;
// the largest of them stands for everything above, and is known to bound nothing.
//
// Beside the bound, a bucket counts the changes of its cells: what was read of a cell is still true if the count is the
// same (version_cache.h).

#ifndef PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
#define PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_

#include <algorithm>
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
  // 16 MiB. Cells that collide only cost a look.
  static constexpr uint32_t kBuckets = 1 << 20;

  explicit NewestSketch(Timestamp newest_in_store)
      : at_open_(Word(newest_in_store, 0)), buckets_(std::make_unique<Bucket[]>(kBuckets)) {
    for (uint32_t i = 0; i < kBuckets; ++i) buckets_[i].word.store(at_open_, std::memory_order_relaxed);
  }

  // To be called before a version at `ts` is written, under the row's latch.
  void Raise(Family family, std::string_view cell_prefix, Timestamp ts) {
    const uint64_t hash = HashOf(family, cell_prefix);
    std::atomic<uint64_t>& bucket = BucketOf(hash).word;
    const uint64_t word = Word(ts, hash);
    uint64_t seen = bucket.load(std::memory_order_relaxed);
    while (seen < word && !bucket.compare_exchange_weak(seen, word, std::memory_order_relaxed)) {
    }
  }

  // False: certainly no version at or after `ts`. Under the row's latch.
  bool MayHaveFrom(Family family, std::string_view cell_prefix, Timestamp ts) const {
    const uint64_t bound = BucketOf(HashOf(family, cell_prefix)).word.load(std::memory_order_relaxed) >> kTagBits;
    return bound >= std::min(ts.value(), kUnbounded);
  }

  // To be called when the cell has changed, while the latch's count says that the write is under way.
  void CountChange(Family family, std::string_view cell_prefix) {
    BucketOf(HashOf(family, cell_prefix)).changes.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t Changes(Family family, std::string_view cell_prefix) const {
    return BucketOf(HashOf(family, cell_prefix)).changes.load(std::memory_order_relaxed);
  }

  // No version of the cell is newer than this, and there may well be one just at it. Absent: nothing is known
  // that is worth a try.
  std::optional<Timestamp> LikelyNewest(Family family, std::string_view cell_prefix) const {
    const uint64_t hash = HashOf(family, cell_prefix);
    const uint64_t word = BucketOf(hash).word.load(std::memory_order_relaxed);
    const uint64_t bound = word >> kTagBits;
    if (word == at_open_ || bound == kUnbounded || word != Word(Timestamp(bound), hash)) return std::nullopt;
    return Timestamp(bound);
  }

 private:
  static constexpr int kTagBits = 10;
  static constexpr uint64_t kUnbounded = ~uint64_t{0} >> kTagBits;

  struct Bucket {
    std::atomic<uint64_t> word;
    std::atomic<uint64_t> changes;
  };

  static uint64_t HashOf(Family family, std::string_view cell_prefix) { return absl::HashOf(family, cell_prefix); }
  // Words order by timestamp first. The tag is the top of the hash, the place in the array its bottom.
  static uint64_t Word(Timestamp ts, uint64_t hash) {
    return std::min(ts.value(), kUnbounded) << kTagBits | hash >> (64 - kTagBits);
  }
  Bucket& BucketOf(uint64_t hash) const { return buckets_[hash & (kBuckets - 1)]; }

  const uint64_t at_open_;
  const std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_NEWEST_SKETCH_H_
