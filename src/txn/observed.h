// SPDX-License-Identifier: Apache-2.0

// The observed columns, as the transactions of this process know them. Transactions mark their changes there; they do
// not need to know the observers. Thread-safe.

#ifndef PERCOLATOR_TXN_OBSERVED_H_
#define PERCOLATOR_TXN_OBSERVED_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "percolator/spi/mutex.h"
#include "percolator/timestamp.h"

namespace percolator {

class ObservedColumns {
 public:
  // By table.
  using Columns = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

  bool Contains(std::string_view table, std::string_view column) const {
    if (!any_.load(std::memory_order_acquire)) return false;
    ReaderLock lock(&mutex_);
    const auto it = columns_.find(table);
    return it != columns_.end() && it->second.contains(column);
  }

  // Returns another number after every change.
  uint64_t version() const { return version_.load(); }

  // Sets the columns observed at `ts`. Does nothing if a newer state is known.
  void Assign(Columns columns, Timestamp ts) {
    WriterLock lock(&mutex_);
    if (ts < known_at_) return;
    known_at_ = ts;
    if (columns_ != columns) version_.fetch_add(1);
    columns_ = std::move(columns);
    any_.store(!columns_.empty(), std::memory_order_release);
  }

 private:
  std::atomic<bool> any_{false};
  std::atomic<uint64_t> version_{0};
  mutable SharedMutex mutex_;
  Timestamp known_at_ ABSL_GUARDED_BY(mutex_);
  Columns columns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_OBSERVED_H_
