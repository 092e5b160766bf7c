// The lock family in memory: the paper's in-memory locality group.
//
// Every read looks for locks and nearly never finds one; every transaction writes and removes some. In
// RocksDB that would be a lookup per read and a trail of tombstones under every hot cell. So the whole family
// is kept here too and asked here, while RocksDB keeps it durable. Locks are as few as the transactions under
// way, so this stays small; and mostly the part of it in which a lock would be is empty, which a look at a number tells.
//
// Who changes it holds the latches of the rows; any thread may read it.

#ifndef PERCOLATOR_STORE_ROCKS_LOCK_TABLE_H_
#define PERCOLATOR_STORE_ROCKS_LOCK_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/store/rocks/cell_key.h"

namespace percolator {

class LockTable {
 public:
  void Set(const HashedPrefix& cell, Timestamp ts, std::string_view value);
  void Erase(const HashedPrefix& cell, const TimestampRange& range);
  void EraseTable(std::string_view table_prefix);

  bool Exists(const HashedPrefix& cell, const TimestampRange& range) const;
  // The timestamps of the cell's versions in the range, newest first.
  std::vector<Timestamp> Timestamps(const HashedPrefix& cell, const TimestampRange& range) const;
  // Appends what the selector selects of the cell.
  // REQUIRES: selector.column is the cell's.
  void Select(const HashedPrefix& cell, const Selector& selector, std::vector<Cell>* out) const;

 private:
  struct Version {
    Timestamp timestamp;
    std::string value;
  };
  using Versions = std::vector<Version>;  // newest first

  struct Shard {
    mutable Mutex mutex;
    absl::flat_hash_map<std::string, Versions, StringHash, std::equal_to<>> cells ABSL_GUARDED_BY(mutex);
    std::atomic<size_t> size{0};  // of `cells`

    void NoteSize() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { size.store(cells.size(), std::memory_order_release); }
    // Of whoever has the latch of a row, or has looked at its count: true only if the row has no lock here. The count
    // also tells if that has changed meanwhile.
    bool IsEmpty() const { return size.load(std::memory_order_acquire) == 0; }
  };
  static constexpr size_t kShards = 64;

  static size_t ShardOf(const HashedPrefix& cell) { return cell.hash >> 58; }

  std::array<Shard, kShards> shards_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_LOCK_TABLE_H_
