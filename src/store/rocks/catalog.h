// The tables of a store: names, schemas, and the ids that stand for them in cell keys.
//
// Kept in RocksDB's default column family (docs/format.md) and here in memory. An id is never used twice, so
// what is left of a dropped table can never be taken for another's.

#ifndef PERCOLATOR_STORE_ROCKS_CATALOG_H_
#define PERCOLATOR_STORE_ROCKS_CATALOG_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "percolator/store.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "src/base/mutex.h"

namespace percolator {

struct Table {
  Table(uint32_t table_id, TableInfo table_info) : id(table_id), info(std::move(table_info)) {}

  const uint32_t id;
  const TableInfo info;
  // Changes under every latch. A writer that holds a latch and finds it false writes before the drop; a reader that
  // finds it false after reading has read what was there before the drop.
  std::atomic<bool> dropped{false};
};

class Catalog {
 public:
  absl::Status Load(rocksdb::DB* db);

  // Null if there is no such table. What it returns lives as long as the catalog, also when the table is
  // dropped.
  Table* Find(const std::string& name) const;
  std::vector<TableInfo> List() const;

  // No more tables can be made: the last id would have no end of range after it.
  bool Full() const;

  // A change has two halves: Stage* puts it into a batch; when that is written, Add or Remove makes it
  // visible. REQUIRES: one change at a time.
  std::unique_ptr<Table> StageCreate(const TableInfo& info, rocksdb::WriteBatch* batch) const;
  void Add(std::unique_ptr<Table> table);
  static void StageDrop(const Table& table, rocksdb::WriteBatch* batch);
  void Remove(const std::string& name);

 private:
  mutable SharedMutex mutex_;
  std::map<std::string, std::unique_ptr<Table>> tables_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Table>> dropped_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CATALOG_H_
