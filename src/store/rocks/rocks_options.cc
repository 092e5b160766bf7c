// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/rocks_options.h"

#include <algorithm>
#include <memory>
#include <string>

#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/max_timestamp.h"
#include "src/store/rocks/message_log.h"

namespace percolator {
namespace {

// The part of a key that names the cell: all but the timestamp.
class CellPrefixTransform : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "percolator.CellPrefix"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), key.size() - kTimestampBytes};
  }
  // Keys that are only sought, never stored, are passed here too; all are at least this long.
  bool InDomain(const rocksdb::Slice& key) const override { return key.size() >= kTimestampBytes; }
};

// Makes RocksDB insert a new key near the one inserted last, whatever their cells.
class NearLastInsertion : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "percolator.NearLastInsertion"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return {key.data(), 0}; }
  // Not the shorter keys of dropped tables: those go into another list, which RocksDB 7.8 would search from a place in
  // this one.
  bool InDomain(const rocksdb::Slice& key) const override { return key.size() > kTimestampBytes; }
};

rocksdb::ColumnFamilyOptions FamilyOptions(Family family, const RocksOptions& options,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions cf;
  const bool small = family == Family::kLock || family == Family::kNotify;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  // A seek for a cell skips the files without the cell. No key is read by its full name, so the filter has only
  // prefixes.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = false;
  cf.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  cf.prefix_extractor = std::make_shared<CellPrefixTransform>();

  // Lock and notify cells live for milliseconds, and most die before they are written to a file. A small buffer keeps
  // little to replay and to skip, and stays in a core's cache, where inserting a key costs half. There are more such
  // buffers, so that writes do not wait for a slow disk.
  cf.write_buffer_size = small ? std::min<size_t>(options.write_buffer_bytes, 2 << 20) : options.write_buffer_bytes;
  cf.max_write_buffer_number = small ? 8 : 4;
  // A lock is mostly erased soon after it was set, and its tombstone belongs right beside it.
  if (family == Family::kLock) cf.memtable_insert_with_hint_prefix_extractor = std::make_shared<NearLastInsertion>();

  // Levels sized from the last one backwards take about 1.1 times the data on disk instead of up to twice.
  cf.level_compaction_dynamic_level_bytes = true;
  cf.compression = small ? rocksdb::kNoCompression : rocksdb::kLZ4Compression;

  cf.table_properties_collector_factories.push_back(NewMaxTimestampCollectorFactory());
  if (small) {
    // Rows that are set and erased all the time leave runs of tombstones, which a scan has to step over. A file with
    // many of them close together is compacted at once.
    cf.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(
        /*sliding_window_size=*/1024, /*deletion_trigger=*/512));
  }
  return cf;
}

}  // namespace

rocksdb::DBOptions MakeDbOptions(const RocksOptions& options, const std::string& message_log_path, rocksdb::Env* env) {
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  // One flush and one compaction at the same time as the writers.
  db.max_background_jobs = 4;
  // RocksDB would start 16 threads for each family to open its files.
  db.max_file_opening_threads = 4;
  // Replays up to the first incomplete record. A power failure may leave garbage in data that was not synced, and
  // complete records after it.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Missing or short log files that were once synced are found at open instead of being taken for empty ones.
  db.track_and_verify_wals_in_manifest = true;
  // Families fill at very different speeds; the slow ones must not hold all logs.
  db.max_total_wal_size = 8 * options.write_buffer_bytes;
  // Writes files steadily, so that one fsync does not wait for hundreds of megabytes.
  db.bytes_per_sync = 1 << 20;
  db.stats_dump_period_sec = 0;
  // A store that stopped stays stopped: RocksDB must not go on by itself, perhaps after the store was opened again.
  db.max_bgerror_resume_count = 0;
  // RocksDB's own logger ends the process when it cannot write a line, as on a full disk.
  db.info_log = NewMessageLog(message_log_path);
  return db;
}

std::vector<rocksdb::ColumnFamilyDescriptor> MakeColumnFamilies(const RocksOptions& options) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (int i = 0; i < kFamilyCount; ++i) {
    const Family family = static_cast<Family>(i);
    families.emplace_back(std::string(FamilyName(family)), FamilyOptions(family, options, cache));
  }
  return families;
}

}  // namespace percolator
