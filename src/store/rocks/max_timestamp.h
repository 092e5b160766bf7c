// SPDX-License-Identifier: Apache-2.0

// Keeps the largest timestamp of a RocksDB file among the file's properties, so that opening a store finds the largest
// timestamp of all without reading the data.

#ifndef PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_
#define PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "percolator/timestamp.h"
#include "rocksdb/db.h"
#include "rocksdb/table_properties.h"

namespace percolator {

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewMaxTimestampCollectorFactory();

// Returns the largest timestamp in the files of one column family. It does not see data that is only in memory: call it
// right after open, when RocksDB has written to files what it recovered.
absl::StatusOr<Timestamp> MaxTimestampInFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_MAX_TIMESTAMP_H_
