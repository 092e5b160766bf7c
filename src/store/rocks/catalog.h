// SPDX-License-Identifier: Apache-2.0

// The catalog of a store: table names, schemas, and the ids that stand for tables in cell keys; and the safe point.
//
// It is kept in RocksDB's default column family (docs/format.md) and in memory. No id is used twice, so the remains of
// a dropped table are never taken for cells of another.

#ifndef PERCOLATOR_STORE_ROCKS_CATALOG_H_
#define PERCOLATOR_STORE_ROCKS_CATALOG_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "src/base/strings.h"

namespace percolator {

struct Table {
  Table(uint32_t table_id, TableInfo table_info) : id(table_id), info(std::move(table_info)) {}

  const uint32_t id;
  const TableInfo info;
  // Set while every latch is held. A writer that holds a latch and finds it false writes before the drop. A reader that
  // finds it false after reading has read the table as it was before the drop.
  std::atomic<bool> dropped{false};
};

class RocksCatalog {
 public:
  absl::Status Load(rocksdb::DB* db);

  // Returns null if there is no such table. A table lives as long as the catalog, also after it was dropped.
  Table* Find(const std::string& name) const {
    // Nearly always one of the tables that were looked up last. A table that is dropped, or being dropped, is looked up
    // again.
    Table* const known = KnownAs(name).load(std::memory_order_acquire);
    return known != nullptr && known->info.name == name && !known->dropped ? known : LookUp(name);
  }
  std::vector<TableInfo> List() const;

  // Returns true if no more tables can be made: the last id would have no end of its range.
  bool Full() const;

  // A change has two halves: Stage* puts it into a batch; Add or Remove makes it visible when the batch is written.
  // REQUIRES: one change at a time.
  std::unique_ptr<Table> StageCreate(const TableInfo& info, rocksdb::WriteBatch* batch) const;
  void Add(std::unique_ptr<Table> table);
  static void StageDrop(const Table& table, rocksdb::WriteBatch* batch);
  void Remove(const std::string& name);

  // The same for the safe point, which only grows.
  static void StageSafePoint(Timestamp ts, rocksdb::WriteBatch* batch);
  void SetSafePoint(Timestamp ts) { safe_point_.store(ts.value(), std::memory_order_release); }
  Timestamp safe_point() const { return Timestamp(safe_point_.load(std::memory_order_acquire)); }

 private:
  static constexpr size_t kKnown = 64;
  std::atomic<Table*>& KnownAs(const std::string& name) const { return known_[StringHash()(name) % kKnown]; }
  Table* LookUp(const std::string& name) const;
  // Returns false if the entry is not valid.
  bool LoadEntry(std::string_view key, std::string_view value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable SharedMutex mutex_;
  std::map<std::string, std::unique_ptr<Table>> tables_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Table>> dropped_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;

  // The table that was looked up last, by hash of the name.
  mutable std::array<std::atomic<Table*>, kKnown> known_{};

  std::atomic<uint64_t> safe_point_{0};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CATALOG_H_
