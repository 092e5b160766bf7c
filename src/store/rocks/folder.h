// SPDX-License-Identifier: Apache-2.0

// The folder of a store on disk.
//
//   DIR/PERCOLATOR   one line, "percolator store format N": tells the format, before anything else is read
//   DIR/rocksdb/     RocksDB's files
//   DIR/CLEAN        the record of the last clean close (clean_record.h); absent while the store is open
//   DIR/messages     RocksDB's messages since it was last opened
//
//   DIR/LOCK         locked with flock while the store is open, so a second open fails, in this process or another
//
// The lock ends with the process, however it dies. Folders and files are created for their owner only. A user that can
// open a file, even just to read it, can lock it; so LOCK is the owner's only, also in a folder that others can read.

#ifndef PERCOLATOR_STORE_ROCKS_FOLDER_H_
#define PERCOLATOR_STORE_ROCKS_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace percolator {

class StoreFolder {
 public:
  // The newest format that this code reads, and the one that it writes.
  static constexpr int kFormat = 1;

  // Creates the folder if it is missing, makes it a store's if it is empty, and locks it. Returns NotFound if it is not
  // a store's and `create_if_missing` is false.
  static absl::StatusOr<std::unique_ptr<StoreFolder>> Open(const std::string& name, bool create_if_missing = true);

  ~StoreFolder();
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;

  const std::string& dir() const { return dir_; }
  std::string rocksdb_dir() const { return dir_ + "/rocksdb"; }
  std::string clean_record_path() const { return dir_ + "/CLEAN"; }
  std::string message_log_path() const { return dir_ + "/messages"; }

 private:
  explicit StoreFolder(std::string dir);
  absl::Status Lock();

  const std::string dir_;
  int lock_fd_ = -1;
  int folder_fd_ = -1;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_FOLDER_H_
