// SPDX-License-Identifier: Apache-2.0

// Reads a file as a whole, with a limit: for values, certificates and lists that a command line or
// an address names.

#ifndef PERCOLATOR_FILE_H_
#define PERCOLATOR_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace percolator {

// Returns the bytes of a regular file or of a pipe. Does not throw. Returns InvalidArgument if the
// file cannot be opened or read, is a directory or a device, is a pipe that nothing writes to for
// some seconds, or has more than `limit` bytes. The message names the path and the reason.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

// Returns the bytes of the standard input, in the same way.
absl::StatusOr<std::string> ReadStandardInput(size_t limit);

}  // namespace percolator

#endif  // PERCOLATOR_FILE_H_
