// SPDX-License-Identifier: Apache-2.0

// Reads original files, and only those below the folder.

#ifndef PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_
#define PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace webindex {

// A file descriptor that the destructor closes.
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

// Opens a file of any kind at a path below the folder, for reading. Returns the errors of ReadOriginal, or Internal for others.
absl::StatusOr<Descriptor> OpenBelow(const std::string& folder, std::string_view path);

inline constexpr size_t kMaxOriginalBytes = 64 << 20;

// Returns the contents of a regular file at a path below the folder. Follows no symbolic link below the folder. Returns
// InvalidArgument if the path has an empty component, "." or ".."; NotFound if there is no such file, it is not a regular file,
// or a component begins with a dot (hidden files are not shown); PermissionDenied if it cannot be read; and ResourceExhausted
// if it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadOriginal(const std::string& folder, std::string_view path,
                                         size_t max_bytes = kMaxOriginalBytes);

// The content type for the extension of the name; "application/octet-stream" if the extension is unknown.
std::string ContentTypeOf(std::string_view path);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ORIGINALS_H_
