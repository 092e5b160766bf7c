// Iterators kept for reuse.
//
// To find the newest version below a timestamp takes a seek, and most of a seek's cost is making the
// iterator. A used iterator that is refreshed costs about as much as a Get.
//
// An idle iterator pins the files and memory tables it last looked at, so the pool is emptied whenever a
// flush or a compaction has replaced some (DropIdle, called by the store's listener).

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

  // An iterator over the versions of one cell at a time: it may be moved only among keys with the cell prefix
  // that was last sought.
  rocksdb::Iterator* Take();
  // The same, never one that was used before.
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
