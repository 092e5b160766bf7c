// Errors that carry evidence (percolator/status.h).

#ifndef PERCOLATOR_BASE_ERRORS_H_
#define PERCOLATOR_BASE_ERRORS_H_

#include <string_view>

#include "absl/status/status.h"
#include "percolator/status.h"

namespace percolator {

// Returns a FailedPrecondition status for which IsClosed is true.
absl::Status ClosedError(std::string_view text);
// Returns an Aborted status that carries `conflict`, with a text made from it.
absl::Status ConflictError(const Conflict& conflict);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_ERRORS_H_
