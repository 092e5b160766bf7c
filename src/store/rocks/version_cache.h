// SPDX-License-Identifier: Apache-2.0

// Caches the newest versions of cells of the write family that were read lately: a read that finds its cell here does
// not need RocksDB.
//
// Writers do not use it. Each write to a cell is counted (NewestSketch::Changes) while the latch's count says that a
// write is under way. An entry has the number of changes that its reader found before it read. So the entry is current
// if the number is still the same and no write is under way; an entry with another number is outdated and counts as
// absent. The reader checks the latch's count before and after (rocks_read.cc), as for all that it reads.
//
// Each shard is bounded in bytes. The oldest entry goes first, unless it was read since: then it gets a second chance.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_ROCKS_VERSION_CACHE_H_
#define PERCOLATOR_STORE_ROCKS_VERSION_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "src/store/rocks/cell_key.h"

namespace percolator {

class VersionCache {
 public:
  static constexpr size_t kShards = 64;

  // Keeps at most about `capacity_bytes` bytes; zero keeps nothing.
  explicit VersionCache(size_t capacity_bytes) : shard_capacity_(capacity_bytes / kShards) {}
  VersionCache(const VersionCache&) = delete;
  VersionCache& operator=(const VersionCache&) = delete;

  // If the newest version of the cell after `changes` changes is cached and in the range, puts its timestamp and value
  // into `out` and returns true.
  bool Find(const HashedPrefix& cell, uint64_t changes, const TimestampRange& range, Cell* out);

  // Adds the newest version of the cell after `changes` changes, and replaces any other.
  void Fill(const HashedPrefix& cell, uint64_t changes, Timestamp ts, std::string_view value);

  // Returns the bytes that the entries take.
  size_t bytes() const;

 private:
  struct Entry {
    std::string bytes;  // the cell's prefix, then the value
    uint32_t prefix_bytes = 0;
    bool used = false;  // since it was added, or since its second chance
    uint64_t changes = 0;
    Timestamp timestamp;

    std::string_view cell_prefix() const { return std::string_view(bytes).substr(0, prefix_bytes); }
    std::string_view value() const { return std::string_view(bytes).substr(prefix_bytes); }
  };
  using Entries = std::list<Entry>;

  static std::string_view PrefixOf(std::string_view cell_prefix) { return cell_prefix; }
  static std::string_view PrefixOf(Entries::iterator entry) { return entry->cell_prefix(); }
  struct Hash {
    using is_transparent = void;
    template <typename T>
    size_t operator()(const T& x) const {
      return absl::HashOf(PrefixOf(x));
    }
  };
  struct Equal {
    using is_transparent = void;
    template <typename T, typename U>
    bool operator()(const T& x, const U& y) const {
      return PrefixOf(x) == PrefixOf(y);
    }
  };
  using Index = absl::flat_hash_set<Entries::iterator, Hash, Equal>;

  struct alignas(64) Shard {
    mutable Mutex mutex;
    Entries entries ABSL_GUARDED_BY(mutex);  // in the order in which they are evicted
    Index index ABSL_GUARDED_BY(mutex);
    size_t bytes ABSL_GUARDED_BY(mutex) = 0;
  };

  // Includes the overhead of the list, the index and the heap.
  static size_t BytesFor(size_t bytes) {
    constexpr size_t kOverhead = 80;
    return sizeof(Entry) + bytes + kOverhead;
  }

  Shard& ShardOf(const HashedPrefix& cell) { return shards_[cell.hash >> 58]; }
  void MakeRoom(Shard* shard) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  const size_t shard_capacity_;
  std::array<Shard, kShards> shards_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_VERSION_CACHE_H_
