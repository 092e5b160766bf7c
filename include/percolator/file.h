// Reads a file as a whole, with a limit: for values, certificates and lists that a command line or an address names.

#ifndef PERCOLATOR_FILE_H_
#define PERCOLATOR_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace percolator {

// Returns the bytes of a regular file, of a pipe, or of the standard input if `path` is "-". Does not throw.
// kInvalidArgument: it can't be opened or read, is a folder or another special file, or has more than `limit` bytes. The
// message names the path and the reason.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

}  // namespace percolator

#endif  // PERCOLATOR_FILE_H_
