// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/iterator_pool.h"

namespace percolator {

rocksdb::Iterator* IteratorPool::Take() {
  for (auto& slot : idle_) {
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    rocksdb::Iterator* iterator = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (iterator != nullptr) return iterator;
  }
  return New();
}

rocksdb::Iterator* IteratorPool::New() {
  rocksdb::ReadOptions options;
  options.prefix_same_as_start = true;
  // Ranges are deleted only with whole tables, and a table's id is never used again.
  options.ignore_range_deletions = true;
  return db_->NewIterator(options, family_);
}

void IteratorPool::Return(rocksdb::Iterator* iterator) {
  for (auto& slot : idle_) {
    rocksdb::Iterator* empty = nullptr;
    if (slot.compare_exchange_strong(empty, iterator, std::memory_order_acq_rel)) return;
  }
  delete iterator;
}

void IteratorPool::DropIdle() {
  for (auto& slot : idle_) delete slot.exchange(nullptr, std::memory_order_acq_rel);
}

}  // namespace percolator
