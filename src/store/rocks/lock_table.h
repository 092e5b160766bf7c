// SPDX-License-Identifier: Apache-2.0

// The lock family in memory: the paper's in-memory locality group.
//
// Every read looks for locks and nearly never finds one; every transaction writes and removes some. In RocksDB, that
// would be a lookup per read and many tombstones under every hot cell. So the whole family is also kept in memory and
// read there, while RocksDB keeps it durable. It is small, because there are only as many locks as transactions under
// way need. Mostly the shard of a cell is empty, which the read of one number shows.
//
// A writer holds the latches of its rows. Any thread may read.

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
  // Returns the timestamps of the cell's versions in the range, newest first.
  std::vector<Timestamp> Timestamps(const HashedPrefix& cell, const TimestampRange& range) const;
  // Appends the versions of the cell that the selector selects.
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
    // Called by a thread that has the latch of a row, or has read its count: true only if the row has no lock in this
    // shard. The count also shows whether that has changed since.
    bool IsEmpty() const { return size.load(std::memory_order_acquire) == 0; }
  };
  static constexpr size_t kShards = 64;

  static size_t ShardOf(const HashedPrefix& cell) { return cell.hash >> 58; }

  std::array<Shard, kShards> shards_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_LOCK_TABLE_H_
