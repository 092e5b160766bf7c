// The largest timestamp in a RocksDB file, kept among the file's properties, so that opening a store learns
// the largest timestamp in all of it without reading the data.

#ifndef PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_
#define PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "percolator/timestamp.h"
#include "rocksdb/db.h"
#include "rocksdb/table_properties.h"

namespace percolator {

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewMaxTimestampCollectorFactory();

// The largest timestamp in the files of one column family. Does not see what is only in memory: for right
// after open, when RocksDB has just written what it recovered to files.
absl::StatusOr<Timestamp> MaxTimestampInFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_
