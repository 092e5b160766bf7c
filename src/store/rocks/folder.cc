// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "percolator/file.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatFile = "PERCOLATOR";
constexpr std::string_view kFormatTemp = "PERCOLATOR.tmp";
constexpr std::string_view kLockFile = "LOCK";
constexpr std::string_view kLockText = "locked while the store is open\n";
constexpr std::string_view kRocksDbFolder = "rocksdb";
constexpr std::string_view kFormatText = "percolator store format ";
constexpr size_t kFormatBytes = 4096;

std::string PathIn(const std::string& dir, std::string_view name) { return StrCat(dir, "/", name); }

absl::Status Failed(std::string_view what, const std::string& path, int error) {
  const std::string text = StrCat(what, " ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status SyncFolder(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("cannot open folder", dir, errno);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error == 0 ? absl::OkStatus() : Failed("cannot sync folder", dir, error);
}

absl::Status WriteSynced(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("cannot create", path, errno);
  int error = 0;
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || fsync(fd) != 0) {
    error = errno != 0 ? errno : EIO;
  }
  close(fd);
  return error == 0 ? absl::OkStatus() : Failed("cannot write", path, error);
}

// Makes the missing folders of the path, each of them durably before the next.
// REQUIRES: `dir` is absolute.
absl::Status MakeFolders(const fs::path& dir) {
  PERCOLATOR_DCHECK(dir.is_absolute());
  std::error_code error;
  if (fs::exists(dir, error) || !dir.has_relative_path()) return absl::OkStatus();
  const fs::path parent = dir.parent_path();
  PERCOLATOR_RETURN_IF_ERROR(MakeFolders(parent));
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return Failed("cannot create folder", dir, errno);
  return SyncFolder(parent);
}

// Writes the format file atomically: after a crash it is there completely or not at all.
absl::Status MakeStoreFolder(const std::string& dir) {
  PERCOLATOR_RETURN_IF_ERROR(MakeFolders(PathIn(dir, kRocksDbFolder)));
  const std::string temp = PathIn(dir, kFormatTemp);
  const std::string path = PathIn(dir, kFormatFile);
  PERCOLATOR_RETURN_IF_ERROR(WriteSynced(temp, StrCat(kFormatText, StoreFolder::kFormat, "\n")));
  if (rename(temp.c_str(), path.c_str()) != 0) return Failed("cannot rename to", path, errno);
  return SyncFolder(dir);
}

// Opening a pipe or a device could block forever.
absl::Status CheckEntries(const std::string& dir) {
  std::error_code error;
  for (fs::directory_iterator entry(dir, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;  // another process's RocksDB may remove files at the same time; the lock finds that out
    const fs::file_status status = entry->status(gone);
    if (!fs::is_other(status)) continue;
    return absl::FailedPreconditionError(StrCat(entry->path().string(),
                                                " is a pipe, a socket or a device, which a "
                                                "store does not have; remove it, or restore the folder from a backup"));
  }
  return error ? Failed("cannot list folder", dir, error.value()) : absl::OkStatus();
}

absl::Status CheckFormat(const std::string& dir) {
  const std::string path = PathIn(dir, kFormatFile);
  const absl::StatusOr<std::string> content = ReadWholeFile(path, kFormatBytes);
  if (!content.ok()) return absl::FailedPreconditionError(content.status().message());
  std::string_view number = *content;
  int format = 0;
  if (!ConsumePrefix(&number, kFormatText) || !absl::SimpleAtoi(std::string(number), &format) || format < 1) {
    return absl::FailedPreconditionError(
        StrCat(path, " does not name a store format and may be damaged; restore it from a backup"));
  }
  if (format > StoreFolder::kFormat) {
    return absl::FailedPreconditionError(StrCat("the store in ", dir, " has format ", format,
                                                ", but this version reads formats up to ", StoreFolder::kFormat,
                                                "; open it with a newer Percolator"));
  }
  // The folder is made before the format file, so a store has lost it.
  std::error_code error;
  if (!fs::is_directory(PathIn(dir, kRocksDbFolder), error)) {
    return absl::FailedPreconditionError(
        StrCat("the store in ", dir, " has lost its folder ", kRocksDbFolder, "; restore it from a backup"));
  }
  PERCOLATOR_RETURN_IF_ERROR(CheckEntries(dir));
  return CheckEntries(PathIn(dir, kRocksDbFolder));
}

// Returns whether the folder is a store's; if not, it is empty. Returns an error if it is something else, or not
// usable.
absl::StatusOr<bool> CheckFolder(const std::string& dir) {
  std::error_code error;
  bool empty = true;
  std::error_code look_error;
  for (fs::directory_iterator entry(dir, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == kFormatFile) {
      PERCOLATOR_RETURN_IF_ERROR(CheckFormat(dir));
      return true;
    }
    // Left by a store whose creation did not finish.
    const bool unfinished =
        name == kFormatTemp || name == kLockFile || (name == kRocksDbFolder && fs::is_empty(entry->path(), look_error));
    if (!unfinished) empty = false;
  }
  if (error) return Failed("cannot list folder", dir, error.value());
  if (!empty) {
    return absl::FailedPreconditionError(
        StrCat(dir, " has files but is not a Percolator store; name an empty or new folder, or the folder of a store"));
  }
  return false;
}

absl::Status OpenAlready(const std::string& dir) {
  return absl::FailedPreconditionError(
      StrCat("the store in ", dir, " is open already, in this or another process; close it there first"));
}

}  // namespace

StoreFolder::StoreFolder(std::string dir) : dir_(std::move(dir)) {}

// Unlocks explicitly: a child process that was forked since would keep the lock through its copy of the descriptor.
StoreFolder::~StoreFolder() {
  for (const int fd : {folder_fd_, lock_fd_}) {
    if (fd < 0) continue;
    flock(fd, LOCK_UN);
    close(fd);
  }
}

absl::Status StoreFolder::Lock() {
  const std::string path = PathIn(dir_, kLockFile);
  lock_fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return Failed("cannot open", path, errno);
  // A copy of the folder may have other permissions.
  (void)fchmod(lock_fd_, 0600);
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failed("cannot lock", path, errno);
    return OpenAlready(dir_);
  }
  // Older versions lock the folder itself. One may still have it open when this version opens it for the first time.
  // Later, it may be a lock of another user, if the folder is open to others, and does not count. This version's lock
  // keeps older versions out.
  folder_fd_ = open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd_ < 0) return Failed("cannot open folder", dir_, errno);
  const bool folder_locked = flock(folder_fd_, LOCK_EX | LOCK_NB) == 0;
  struct stat lock_file;
  if (fstat(lock_fd_, &lock_file) != 0) return Failed("cannot stat", path, errno);
  if (lock_file.st_size > 0) return absl::OkStatus();
  if (!folder_locked) return OpenAlready(dir_);
  if (write(lock_fd_, kLockText.data(), kLockText.size()) < 0) return Failed("cannot write", path, errno);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StoreFolder>> StoreFolder::Open(const std::string& name, bool create_if_missing) {
  if (name.empty()) return absl::InvalidArgumentError("the name of the store folder is empty");
  // Absolute, so that it names the same folder when the process changes its working folder; and without a slash at its
  // end.
  std::error_code error;
  fs::path path = fs::absolute(name, error);
  if (!error) path = fs::weakly_canonical(path, error);
  if (error) return Failed("cannot find folder", name, error.value());
  if (!path.has_filename()) path = path.parent_path();
  const std::string dir = path;
  if (!create_if_missing && !fs::exists(PathIn(dir, kFormatFile), error)) {
    return absl::NotFoundError(StrCat("there is no store in ", dir));
  }
  PERCOLATOR_RETURN_IF_ERROR(MakeFolders(path));
  // Checked before the lock file is made in the folder, and again under the lock.
  PERCOLATOR_RETURN_IF_ERROR(CheckFolder(dir).status());
  std::unique_ptr<StoreFolder> folder(new StoreFolder(dir));
  PERCOLATOR_RETURN_IF_ERROR(folder->Lock());
  PERCOLATOR_ASSIGN_OR_RETURN(const bool is_store, CheckFolder(dir));
  if (is_store) return folder;
  PERCOLATOR_RETURN_IF_ERROR(MakeStoreFolder(dir));
  return folder;
}

}  // namespace percolator
