// Checks of requests against the rules and limits of percolator/store.h, the same for every store.
//
// Each returns OK, or kInvalidArgument with a text that names what is wrong, its size and the limit.

#ifndef PERCOLATOR_STORE_VALIDATE_H_
#define PERCOLATOR_STORE_VALIDATE_H_

#include <string>

#include "absl/status/status.h"
#include "percolator/store.h"

namespace percolator {

absl::Status ValidateTableName(const std::string& name);
absl::Status ValidateRead(const RowRead& read, const StoreLimits& limits);
absl::Status ValidateScan(const ScanRequest& request, const StoreLimits& limits);
absl::Status ValidateMutation(const RowMutation& mutation, const StoreLimits& limits);

// The kNotFound of an operation on a table that does not exist.
absl::Status UnknownTable(const std::string& name);
// The kAlreadyExists of creating a table that does.
absl::Status TableExists(const std::string& name);
// The kFailedPrecondition of any call after Close.
absl::Status StoreClosed();

}  // namespace percolator

#endif  // PERCOLATOR_STORE_VALIDATE_H_
