// A number on disk that only grows: the bound below which an oracle may hand out timestamps.
//
// The file holds the number twice, each copy in a block of its own, with a checksum. Raise writes the first copy, syncs,
// writes the second, syncs. So at every moment at least one copy is whole, and no copy that is whole is below the last
// number that Raise returned for:
//
//   power fails while       first copy             second copy            Open takes
//   nothing is written      n                      n                      n
//   the first is written    n, n' or unreadable    n                      n or n'
//   the second is written   n'                     n, n' or unreadable    n'
//
// A copy that rots has its twin. If both are unreadable nobody knows the number, and Open refuses: a number that is too
// small would let timestamps be handed out twice. Format: docs/format.md.

#ifndef PERCOLATOR_ORACLE_BOUND_FILE_H_
#define PERCOLATOR_ORACLE_BOUND_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace percolator {

class BoundFile {
 public:
  static constexpr size_t kBlockBytes = 4096;

  // Opens the file and locks it: one process at a time may use it. kNotFound: there is none.
  static absl::StatusOr<std::unique_ptr<BoundFile>> Open(const std::string& path);
  // Makes a new file that says `bound`. kAlreadyExists: there is one.
  static absl::StatusOr<std::unique_ptr<BoundFile>> Create(const std::string& path, uint64_t bound);

  ~BoundFile();
  BoundFile(const BoundFile&) = delete;
  BoundFile& operator=(const BoundFile&) = delete;

  uint64_t bound() const { return bound_; }

  // Makes the file say `bound`; on return it is on disk. After an error it is not known what the file says, and nothing
  // more can be done with it but to open it anew.
  // REQUIRES: bound >= this->bound().
  absl::Status Raise(uint64_t bound);

 private:
  BoundFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Lock() const;
  absl::Status Load();
  absl::Status WriteCopies(uint64_t bound) const;
  absl::Status Failed(const char* what) const;

  const std::string path_;
  const int fd_;
  uint64_t bound_ = 0;
  bool failed_ = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_BOUND_FILE_H_
