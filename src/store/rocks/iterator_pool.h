// SPDX-License-Identifier: Apache-2.0

// A pool of iterators for reuse.
//
// To find the newest version below a timestamp takes a seek, and most of its cost is making the iterator. A used
// iterator that is refreshed costs about as much as a Get.
//
// An idle iterator pins the files and memory tables that it last read, so the store's listener empties the pool
// (DropIdle) after a flush or a compaction has replaced some.

#ifndef PERCOLATOR_STORE_ROCKS_ITERATOR_POOL_H_
#define PERCOLATOR_STORE_ROCKS_ITERATOR_POOL_H_

#include <array>
#include <atomic>
#include <memory>

#include "rocksdb/db.h"
#include "rocksdb/iterator.h"

namespace percolator {

class IteratorPool {
 public:
  IteratorPool() = default;
  ~IteratorPool() { DropIdle(); }
  IteratorPool(const IteratorPool&) = delete;
  IteratorPool& operator=(const IteratorPool&) = delete;

  void Start(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
    db_ = db;
    family_ = family;
  }

  // Returns an iterator over the versions of one cell at a time: it may move only among keys with the cell prefix of
  // its last seek.
  rocksdb::Iterator* Take();
  // The same, but always a new one.
  rocksdb::Iterator* New();
  void Return(rocksdb::Iterator* iterator);
  void DropIdle();

 private:
  static constexpr int kSlots = 16;

  rocksdb::DB* db_ = nullptr;
  rocksdb::ColumnFamilyHandle* family_ = nullptr;
  std::array<std::atomic<rocksdb::Iterator*>, kSlots> idle_{};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_ITERATOR_POOL_H_
