// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/bound_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/coding.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr std::string_view kMagic = "PercTSO1";
constexpr int kCopies = 2;
constexpr size_t kCopyBytes = 8 + 8 + 4;

std::string Encode(uint64_t bound) {
  std::string copy(kMagic);
  AppendFixed64(&copy, bound);
  AppendFixed32(&copy, static_cast<uint32_t>(
                           crc32(0, reinterpret_cast<const Bytef*>(copy.data()), static_cast<uInt>(copy.size()))));
  return copy;
}

// Returns nullopt if the copy is damaged.
std::optional<uint64_t> Decode(std::string_view copy) {
  std::string_view in = copy;
  uint64_t bound = 0;
  if (!ConsumePrefix(&in, kMagic) || !ConsumeFixed64(&in, &bound) || Encode(bound) != copy) return std::nullopt;
  return bound;
}

bool WriteAll(int fd, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return true;
}

bool SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced;
}

}  // namespace

BoundFile::~BoundFile() { close(fd_); }

absl::Status BoundFile::Failed(const char* what) const {
  return absl::DataLossError(StrCat("cannot ", what, " the oracle's file ", path_, ": ", std::strerror(errno)));
}

absl::Status BoundFile::Lock() const {
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return Failed("lock");
  return absl::FailedPreconditionError(StrCat("cannot lock the oracle's file ", path_, ": another oracle has it open"));
}

absl::StatusOr<std::unique_ptr<BoundFile>> BoundFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return absl::NotFoundError(StrCat("the oracle's file ", path, " does not exist"));
  if (fd < 0) {
    return absl::FailedPreconditionError(StrCat("cannot open the oracle's file ", path, ": ", std::strerror(errno)));
  }
  std::unique_ptr<BoundFile> file(new BoundFile(path, fd));
  // Users who may read the file could lock it. Older versions created it readable.
  (void)fchmod(fd, 0600);
  PERCOLATOR_RETURN_IF_ERROR(file->Lock());
  PERCOLATOR_RETURN_IF_ERROR(file->Load());
  return file;
}

absl::Status BoundFile::Load() {
  std::optional<uint64_t> found;
  for (int i = 0; i < kCopies; ++i) {
    std::string copy(kCopyBytes, '\0');
    const ssize_t n = pread(fd_, copy.data(), copy.size(), static_cast<off_t>(i * kBlockBytes));
    if (n < 0) return Failed("read");
    copy.resize(static_cast<size_t>(n));
    if (const std::optional<uint64_t> bound = Decode(copy)) found = std::max(found.value_or(0), *bound);
  }
  if (!found.has_value()) {
    return absl::DataLossError(StrCat(
        "cannot read the oracle's file ", path_,
        ": both copies of the bound are damaged, so the issued timestamps are unknown; restore the file from a backup "
        "that is not older than the data, or write a bound above every timestamp in the data"));
  }
  bound_ = *found;
  return absl::OkStatus();
}

// Writes the file under another name first, so that `path` is complete or does not exist.
absl::StatusOr<std::unique_ptr<BoundFile>> BoundFile::Create(const std::string& path, uint64_t bound) {
  const std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::FailedPreconditionError(StrCat("cannot create ", temporary, ": ", std::strerror(errno)));
  }
  std::unique_ptr<BoundFile> file(new BoundFile(path, fd));
  PERCOLATOR_RETURN_IF_ERROR(file->Lock());
  // Checked under the lock: before it, the temporary file may belong to another process that is about to rename it.
  if (std::filesystem::exists(path)) {
    return absl::AlreadyExistsError(StrCat("the oracle's file ", path, " already exists"));
  }
  PERCOLATOR_RETURN_IF_ERROR(file->Raise(bound));
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return file->Failed("rename");
  if (!SyncFolderOf(path)) return file->Failed("sync the folder of");
  return file;
}

absl::Status BoundFile::Raise(uint64_t bound) {
  PERCOLATOR_DCHECK(bound >= bound_);
  if (failed_) {
    return absl::FailedPreconditionError(
        StrCat("cannot write the oracle's file ", path_, ": an earlier write failed; open the oracle again"));
  }
  absl::Status status = WriteCopies(bound);
  failed_ = !status.ok();
  if (status.ok()) bound_ = bound;
  return status;
}

absl::Status BoundFile::WriteCopies(uint64_t bound) const {
  const std::string copy = Encode(bound);
  for (int i = 0; i < kCopies; ++i) {
    if (!WriteAll(fd_, copy, static_cast<off_t>(i * kBlockBytes))) return Failed("write");
    if (fdatasync(fd_) != 0) return Failed("sync");
  }
  return absl::OkStatus();
}

}  // namespace percolator
