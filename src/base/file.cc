#include "percolator/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "src/base/strings.h"

namespace percolator {
namespace {

absl::Status CantRead(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("can't read the file ", path, ": ", why));
}

absl::StatusOr<std::string> ReadFrom(int fd, const std::string& path, size_t limit) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return CantRead(path, std::strerror(errno));
  if (S_ISDIR(found.st_mode)) return CantRead(path, "it is a folder");
  // A device may never end. The standard input may be a terminal.
  const bool is_device = S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode);
  if (is_device && fd != STDIN_FILENO) return CantRead(path, "it is a device");
  std::string bytes;
  std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CantRead(path, std::strerror(errno));
    if (got == 0) return bytes;
    if (static_cast<size_t>(got) > limit - bytes.size()) {
      return CantRead(path, StrCat("it has more than the limit of ", limit, " bytes"));
    }
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

absl::StatusOr<std::string> ReadStandardInput(size_t limit) { return ReadFrom(STDIN_FILENO, "-", limit); }

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  // Without waiting for the writer of a pipe that has none. Reading waits, as usual.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return CantRead(path, std::strerror(errno));
  fcntl(fd, F_SETFL, O_RDONLY);
  absl::StatusOr<std::string> bytes = ReadFrom(fd, path, limit);
  close(fd);
  return bytes;
}

}  // namespace percolator
