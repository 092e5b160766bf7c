// The folder of a store on disk.
//
//   DIR/PERCOLATOR   one line, "percolator store format N": says what the folder is, before anything else is touched
//   DIR/rocksdb/     RocksDB's files
//   DIR/CLEAN        what the last clean close has left (clean_record.h); absent while the store is open
//   DIR/messages     what RocksDB had to say since it was opened last
//
// An open folder is locked (flock on the folder itself), so a second open fails, in this process or another.
// The lock goes with the process, however it dies.

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
  StoreFolder(std::string dir, int fd);

  const std::string dir_;
  const int fd_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_FOLDER_H_
