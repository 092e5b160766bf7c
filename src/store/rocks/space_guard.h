// SPDX-License-Identifier: Apache-2.0

// SpaceGuard: refuses writes while there is still space to finish those that have begun.
//
// A write that fails because the disk is full leaves its outcome open and stops the store (docs/decisions/0004). So the
// store keeps a reserve: when less is free, it refuses mutations that only add something. They are certainly not
// applied. Commits and rollbacks of locked rows, garbage collection, flushes and compactions use the reserve. When
// space returns, the store accepts all mutations again.
//
// Flushing the data in memory needs space, perhaps more than the reserve. If less than twice as much is free, the guard
// refuses too, and starts a flush while one is still possible: then RocksDB deletes logs, and writes are accepted
// again.

#ifndef PERCOLATOR_STORE_ROCKS_SPACE_GUARD_H_
#define PERCOLATOR_STORE_ROCKS_SPACE_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "rocksdb/file_system.h"

namespace percolator {

// Thread-safe.
class SpaceGuard {
 public:
  // Keeps `reserve_bytes` free on the disk of `folder`, but at most a twentieth of its size. Zero refuses nothing.
  SpaceGuard(std::shared_ptr<rocksdb::FileSystem> files, std::string folder, uint64_t reserve_bytes);

  // Counts data that is not flushed too. `flush` starts a flush without waiting. REQUIRES: called before the first
  // Take.
  void CountUnflushed(std::function<uint64_t()> unflushed_bytes, std::function<void()> flush);

  // Returns ResourceExhausted if too little is free. Asks the file system once for each mebibyte that is written, once
  // for 256 small writes, and before every write while the disk is full.
  absl::Status Take(size_t bytes);

  // Returns whether a mutation only adds something, so that it may be refused.
  static bool OnlyAdds(const RowMutation& mutation);

 private:
  absl::Status Look();

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string folder_;
  const uint64_t reserve_;
  std::function<uint64_t()> unflushed_bytes_ = [] { return uint64_t{0}; };
  std::function<void()> flush_;
  std::atomic<int64_t> until_look_{0};  // bytes
  std::atomic<bool> full_{false};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_SPACE_GUARD_H_
