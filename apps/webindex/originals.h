// Original files, and only those below the folder.

#ifndef PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_
#define PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace webindex {

// A file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens the file at a path below the folder, of whatever kind, to read it. Errors as of ReadOriginal; kInternal: others.
absl::StatusOr<Descriptor> OpenBelow(const std::string& folder, std::string_view path);

inline constexpr size_t kLargestOriginal = 64 << 20;

// The contents of a regular file at a path below the folder. Nothing else can be reached: a path with "..", an empty or a "."
// component is kInvalidArgument, and no symbolic link below the folder is followed. kNotFound: there is no such file, it is
// not a regular one, or a component of the path begins with a dot: hidden files are not shown. kPermissionDenied: it can't be read. kResourceExhausted: it is larger than `most`.
absl::StatusOr<std::string> ReadOriginal(const std::string& folder, std::string_view path,
                                         size_t most = kLargestOriginal);

// By the extension of its name; "application/octet-stream" if that is not known.
std::string ContentTypeOf(std::string_view path);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_
