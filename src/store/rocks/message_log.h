// SPDX-License-Identifier: Apache-2.0

// Writes RocksDB's warnings and errors to a text file. If a line cannot be written, only that line is lost.

#ifndef PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_
#define PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_

#include <memory>
#include <string>

#include "rocksdb/env.h"

namespace percolator {

// Truncates the file.
std::shared_ptr<rocksdb::Logger> NewMessageLog(const std::string& path);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_
