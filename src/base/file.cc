// SPDX-License-Identifier: Apache-2.0

#include "percolator/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "src/base/strings.h"

namespace percolator {
namespace {

// How long to wait for a writer of a pipe.
constexpr int kWriterMs = 5'000;

absl::Status ReadError(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("cannot read the file ", path, ": ", why));
}

// Returns true if there are bytes to read, or a writer has opened and closed the pipe, within the time. -1 waits forever.
bool WaitToRead(int fd, int milliseconds) {
  pollfd file{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&file, 1, milliseconds) > 0;
}

absl::StatusOr<std::string> ReadFrom(int fd, const std::string& path, size_t limit) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return ReadError(path, std::strerror(errno));
  if (S_ISDIR(found.st_mode)) return ReadError(path, "it is a folder");
  // A device may never end. The standard input may be a terminal.
  const bool is_device = S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode);
  if (is_device && fd != STDIN_FILENO) return ReadError(path, "it is a device");
  // A pipe without a writer looks like an empty file, so wait for a writer first.
  bool has_writer = !S_ISFIFO(found.st_mode) || fd == STDIN_FILENO;
  bool waited = false;
  std::string bytes;
  std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      has_writer = true;
      (void)WaitToRead(fd, -1);
      continue;
    }
    if (got < 0) return ReadError(path, std::strerror(errno));
    if (got == 0 && (has_writer || !bytes.empty())) return bytes;
    if (got == 0 && waited) return ReadError(path, "it is a pipe, and nothing writes to it");
    if (got == 0) {
      waited = true;
      has_writer = WaitToRead(fd, kWriterMs);
      continue;
    }
    if (static_cast<size_t>(got) > limit - bytes.size()) {
      return ReadError(path, StrCat("it has more than the limit of ", limit, " bytes"));
    }
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

absl::StatusOr<std::string> ReadStandardInput(size_t limit) { return ReadFrom(STDIN_FILENO, "-", limit); }

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  // With O_NONBLOCK, open() does not wait for a writer of a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ReadError(path, std::strerror(errno));
  absl::StatusOr<std::string> bytes = ReadFrom(fd, path, limit);
  close(fd);
  return bytes;
}

}  // namespace percolator
