#include "src/store/rocks/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatFile = "PERCOLATOR";
constexpr std::string_view kFormatTemp = "PERCOLATOR.tmp";
constexpr std::string_view kFormatText = "percolator store format ";

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
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Failed("cannot create", path, errno);
  int error = 0;
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || fsync(fd) != 0) {
    error = errno != 0 ? errno : EIO;
  }
  close(fd);
  return error == 0 ? absl::OkStatus() : Failed("cannot write", path, error);
}

// Writes the format file so that it is there wholly or not at all, whatever happens.
absl::Status MakeStoreFolder(const std::string& dir) {
  const std::string temp = PathIn(dir, kFormatTemp);
  const std::string path = PathIn(dir, kFormatFile);
  if (absl::Status s = WriteSynced(temp, StrCat(kFormatText, StoreFolder::kFormat, "\n")); !s.ok()) return s;
  if (rename(temp.c_str(), path.c_str()) != 0) return Failed("cannot rename to", path, errno);
  return SyncFolder(dir);
}

absl::Status CheckFormat(const std::string& dir) {
  const std::string path = PathIn(dir, kFormatFile);
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string content = std::move(text).str();
  std::string_view number = content;
  int format = 0;
  if (!file || !ConsumePrefix(&number, kFormatText) || !absl::SimpleAtoi(std::string(number), &format)) {
    return absl::FailedPreconditionError(
        StrCat(path, " does not say which format the store has; is it damaged? Restore it from a backup"));
  }
  if (format > StoreFolder::kFormat) {
    return absl::FailedPreconditionError(StrCat("the store in ", dir, " has format ", format,
                                                ", and this version reads formats up to ", StoreFolder::kFormat,
                                                ": use a newer Percolator to open it"));
  }
  return absl::OkStatus();
}

// OK if the folder is a store's after this, or was one before.
absl::Status CheckOrMakeStoreFolder(const std::string& dir) {
  std::error_code error;
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename();
    if (name == kFormatFile) return CheckFormat(dir);
    if (name != kFormatTemp) empty = false;
  }
  if (error) return Failed("cannot list folder", dir, error.value());
  if (!empty) {
    return absl::FailedPreconditionError(
        StrCat(dir, " holds files but no Percolator store: name an empty or new folder, or the folder of a store"));
  }
  return MakeStoreFolder(dir);
}

}  // namespace

StoreFolder::StoreFolder(std::string dir, int fd) : dir_(std::move(dir)), fd_(fd) {}

StoreFolder::~StoreFolder() { close(fd_); }

absl::StatusOr<std::unique_ptr<StoreFolder>> StoreFolder::Open(const std::string& dir) {
  std::error_code error;
  if (fs::create_directories(dir, error)) {
    const fs::path parent = fs::absolute(dir).lexically_normal().parent_path();
    if (absl::Status s = SyncFolder(parent); !s.ok()) return s;
  }
  if (error) return Failed("cannot create folder", dir, error.value());
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("cannot open folder", dir, errno);
  std::unique_ptr<StoreFolder> folder(new StoreFolder(dir, fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failed("cannot lock folder", dir, errno);
    return absl::FailedPreconditionError(
        StrCat("the store in ", dir, " is open already, here or in another process: one at a time can use it"));
  }
  if (absl::Status s = CheckOrMakeStoreFolder(dir); !s.ok()) return s;
  return folder;
}

}  // namespace percolator
