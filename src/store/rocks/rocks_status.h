// SPDX-License-Identifier: Apache-2.0

// Translates RocksDB's statuses into absl::Status.

#ifndef PERCOLATOR_STORE_ROCKS_ROCKS_STATUS_H_
#define PERCOLATOR_STORE_ROCKS_ROCKS_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "rocksdb/status.h"

namespace percolator {

// `doing` completes the sentence "while ...". OK stays OK.
absl::Status FromRocks(const rocksdb::Status& status, std::string_view doing);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_ROCKS_STATUS_H_
