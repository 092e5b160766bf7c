// SPDX-License-Identifier: Apache-2.0

// A number on disk that only grows: the bound below which an oracle may issue timestamps.
//
// The file holds two copies of the number, each in its own block and with a checksum. Raise writes the first copy, syncs,
// writes the second copy, and syncs. So at every moment at least one copy is intact, and no intact copy is below the last
// number for which Raise succeeded:
//
//   power fails while       first copy             second copy            Open uses
//   nothing is written      n                      n                      n
//   the first is written    n, n' or damaged       n                      n or n'
//   the second is written   n'                     n, n' or damaged       n'
//
// If one copy decays, the other remains. If both are damaged, the number is unknown and Open fails: a number that is too
// small would let timestamps be issued twice. Format: docs/format.md.

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

  // Opens the file and locks it: one object at a time may use it. Returns NotFound if the file does not exist,
  // FailedPrecondition if it is locked or cannot be opened, and DataLoss if both copies are damaged.
  static absl::StatusOr<std::unique_ptr<BoundFile>> Open(const std::string& path);
  // Creates the file with `bound`. Returns AlreadyExists if the file exists.
  static absl::StatusOr<std::unique_ptr<BoundFile>> Create(const std::string& path, uint64_t bound);

  ~BoundFile();
  BoundFile(const BoundFile&) = delete;
  BoundFile& operator=(const BoundFile&) = delete;

  uint64_t bound() const { return bound_; }

  // Writes and syncs `bound`. After an error the contents of the file are unknown, and Raise fails until the file is opened
  // again.
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
