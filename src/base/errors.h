// SPDX-License-Identifier: Apache-2.0

// Makes the errors that percolator/status.h reads.

#ifndef PERCOLATOR_BASE_ERRORS_H_
#define PERCOLATOR_BASE_ERRORS_H_

#include <string_view>

#include "absl/status/status.h"
#include "percolator/conflict.h"
#include "percolator/status.h"

namespace percolator {

// Returns a FailedPrecondition status for which IsClosed is true.
absl::Status ClosedError(std::string_view text);
// Returns an Aborted status that carries `conflict` and describes it in its text.
absl::Status ConflictError(const Conflict& conflict);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_ERRORS_H_
