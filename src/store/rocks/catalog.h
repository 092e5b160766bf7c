// The tables of a store: names, schemas, and the ids that stand for them in cell keys. And its safe point.
//
// Kept in RocksDB's default column family (docs/format.md) and here in memory. An id is never used twice, so
// what is left of a dropped table can never be taken for another's.

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
  // Changes under every latch. A writer that holds a latch and finds it false writes before the drop; a reader that
  // finds it false after reading has read what was there before the drop.
  std::atomic<bool> dropped{false};
};

class RocksCatalog {
 public:
  absl::Status Load(rocksdb::DB* db);

  // Null if there is no such table. What it returns lives as long as the catalog, also when the table is
  // dropped.
  Table* Find(const std::string& name) const {
    // Nearly always one of the last that were asked for. A table that is dropped, or being dropped, is looked up.
    Table* const known = KnownAs(name).load(std::memory_order_acquire);
    return known != nullptr && known->info.name == name && !known->dropped ? known : LookUp(name);
  }
  std::vector<TableInfo> List() const;

  // No more tables can be made: the last id would have no end of range after it.
  bool Full() const;

  // A change has two halves: Stage* puts it into a batch; when that is written, Add or Remove makes it
  // visible. REQUIRES: one change at a time.
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
  // False: the entry can't be read.
  bool LoadEntry(std::string_view key, std::string_view value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable SharedMutex mutex_;
  std::map<std::string, std::unique_ptr<Table>> tables_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Table>> dropped_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;

  // By hash of the name, the table that was looked up last.
  mutable std::array<std::atomic<Table*>, kKnown> known_{};

  std::atomic<uint64_t> safe_point_{0};
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CATALOG_H_
