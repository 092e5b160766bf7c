// SPDX-License-Identifier: Apache-2.0

// Reads the versions of single cells through pooled iterators, for the fast path of Read and for conditions.

#ifndef PERCOLATOR_STORE_ROCKS_POINT_READER_H_
#define PERCOLATOR_STORE_ROCKS_POINT_READER_H_

#include <array>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "rocksdb/iterator.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/iterator_pool.h"
#include "src/store/rocks/rocks_status.h"

namespace percolator {

using IteratorPools = std::array<IteratorPool, kFamilyCount>;

class PointReader {
 public:
  explicit PointReader(IteratorPools* pools) : pools_(pools) {}
  ~PointReader();
  PointReader(const PointReader&) = delete;
  PointReader& operator=(const PointReader&) = delete;

  // Later reads see every write that was finished before this call.
  void Renew() { fresh_.fill(false); }

  // Calls visit(timestamp, value) for the versions in the range of the current cell of `keys`, newest first, until it
  // returns false.
  template <typename Visit>
  absl::Status VisitVersions(Family family, RowKeys* keys, const TimestampRange& range, const Visit& visit) {
    if (range.empty()) return absl::OkStatus();
    rocksdb::Iterator* it = FreshIterator(family);
    const std::string_view newest = keys->At(Timestamp(range.until.value() - 1));
    for (it->Seek({newest.data(), newest.size()}); it->Valid(); it->Next()) {
      const std::string_view key(it->key().data(), it->key().size());
      if (CellPrefixOf(key) != keys->cell().prefix) break;
      const Timestamp ts = TimestampOf(key);
      if (ts < range.from) break;
      if (!visit(ts, std::string_view(it->value().data(), it->value().size()))) return absl::OkStatus();
    }
    return FromRocks(it->status(), "reading a cell");
  }

 private:
  rocksdb::Iterator* FreshIterator(Family family);

  IteratorPools* const pools_;
  std::array<rocksdb::Iterator*, kFamilyCount> iterators_{};
  std::array<bool, kFamilyCount> fresh_{};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_POINT_READER_H_
