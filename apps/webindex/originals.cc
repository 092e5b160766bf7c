// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/originals.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "percolator/status_macros.h"

namespace webindex {

namespace {

absl::Status ErrorOf(int error, std::string_view path) {
  const std::string name(path);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError("no permission to read " + name);
  if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG || error == ENXIO) {
    return absl::NotFoundError("there is no file " + name);
  }
  return absl::InternalError("cannot read " + name + ": " + std::strerror(error));
}

absl::StatusOr<std::vector<std::string>> Components(std::string_view path) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    components.emplace_back(path.substr(begin, end - begin));
    const std::string& name = components.back();
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("\"" + std::string(path) + "\" is not the path of a file below the folder");
    }
    if (name.starts_with('.')) return absl::NotFoundError("there is no file " + std::string(path));
    begin = end + 1;
  }
  return components;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

// Opens one folder after the other, so that no other process can replace a folder by a link in between. With O_NONBLOCK, opening
// a pipe does not wait for a writer.
absl::StatusOr<Descriptor> OpenBelow(const std::string& folder, std::string_view path) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> components, Components(path));
  Descriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.get() >= 0 && i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    at = Descriptor(openat(at.get(), components[i].c_str(), flags));
  }
  if (at.get() < 0) return ErrorOf(errno, path);
  return at;
}

absl::StatusOr<std::string> ReadOriginal(const std::string& folder, std::string_view path, size_t max_bytes) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Descriptor file, OpenBelow(folder, path));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return ErrorOf(errno, path);
  if (!S_ISREG(status.st_mode)) return ErrorOf(ENOENT, path);
  std::string contents;
  for (;;) {
    char buffer[64 << 10];
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrorOf(errno, path);
    if (got == 0) return contents;
    if (contents.size() + static_cast<size_t>(got) > max_bytes) {
      return absl::ResourceExhaustedError("the file " + std::string(path) + " is larger than " +
                                          std::to_string(max_bytes) + " bytes");
    }
    contents.append(buffer, static_cast<size_t>(got));
  }
}

std::string ContentTypeOf(std::string_view path) {
  static constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {"html", "text/html"},      {"htm", "text/html"},       {"xhtml", "application/xhtml+xml"},
      {"shtml", "text/html"},     {"css", "text/css"},        {"js", "text/javascript"},
      {"txt", "text/plain"},      {"md", "text/plain"},       {"json", "application/json"},
      {"xml", "application/xml"}, {"svg", "image/svg+xml"},   {"png", "image/png"},
      {"jpg", "image/jpeg"},      {"jpeg", "image/jpeg"},     {"gif", "image/gif"},
      {"webp", "image/webp"},     {"ico", "image/x-icon"},    {"woff", "font/woff"},
      {"woff2", "font/woff2"},    {"pdf", "application/pdf"},
  };
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find('?'));  // crawlers keep a query in the name of the file
  const size_t dot = name.find_last_of('.');
  std::string extension(dot == std::string_view::npos ? "" : name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [known, type] : kTypes) {
    if (extension == known) return type;
  }
  return "application/octet-stream";
}

}  // namespace webindex
