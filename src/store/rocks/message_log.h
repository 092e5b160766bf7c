// RocksDB's warnings and errors in a text file. A line that can't be written is lost, and nothing else.

#ifndef PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_
#define PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_

#include <memory>
#include <string>

#include "rocksdb/env.h"

namespace percolator {

// Begins the file anew.
std::shared_ptr<rocksdb::Logger> NewMessageLog(const std::string& path);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_MESSAGE_LOG_H_
