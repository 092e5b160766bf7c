// SPDX-License-Identifier: Apache-2.0

// RocksDB's options for each family, with the reasons.

#ifndef PERCOLATOR_STORE_ROCKS_ROCKS_OPTIONS_H_
#define PERCOLATOR_STORE_ROCKS_ROCKS_OPTIONS_H_

#include <string>
#include <vector>

#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace percolator {

// RocksDB's messages go to the file `message_log_path`.
rocksdb::DBOptions MakeDbOptions(const RocksOptions& options, const std::string& message_log_path, rocksdb::Env* env);

// Returns the default column family, which holds the catalog, and then one for each Family, in the order of its values.
std::vector<rocksdb::ColumnFamilyDescriptor> MakeColumnFamilies(const RocksOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_ROCKS_OPTIONS_H_
