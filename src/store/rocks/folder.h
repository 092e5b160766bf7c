// The folder of a store on disk.
//
//   DIR/PERCOLATOR   one line, "percolator store format N": says what the folder is, before anything else is touched
//   DIR/rocksdb/     RocksDB's files
//   DIR/CLEAN        what the last clean close has left (clean_record.h); absent while the store is open
//   DIR/messages     what RocksDB had to say since it was opened last
//
//   DIR/LOCK         locked with flock while the store is open, so a second open fails, in this process or another
//
// The lock goes with the process, however it dies. Folders and files are created for their owner alone. Whoever can open
// a file, if only to read it, can lock it, so LOCK is always the owner's alone, also in a folder that others can read.

#ifndef PERCOLATOR_STORE_ROCKS_FOLDER_H_
#define PERCOLATOR_STORE_ROCKS_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace percolator {

class StoreFolder {
 public:
  // The newest format this code reads, and the one it writes.
  static constexpr int kFormat = 1;

  // Creates the folder if it is missing, makes it a store's if it is empty, and locks it. Without `create_if_missing` it
  // has to be a store's: else kNotFound.
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
