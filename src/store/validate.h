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
absl::Status ValidateJointMutation(const JointMutation& mutation, const StoreLimits& limits);

// The kOutOfRange of a mutation that would lock a cell at or below the safe point (G4).
absl::Status CheckSafePoint(const RowMutation& mutation, Timestamp safe_point);
absl::Status CheckSafePoint(const JointMutation& mutation, Timestamp safe_point);

// What a joint mutation answers when the oracle gives no timestamp: nothing was applied. kUnavailable, if it may give one
// soon.
absl::Status NoTimestampDrawn(const absl::Status& oracle);
// The timestamp of a set: the drawn one in the place of JointMutation::AtCommit().
inline Timestamp TimestampOfSet(const Mutation& set, Timestamp drawn) {
  return set.range.from == JointMutation::AtCommit() ? drawn : set.range.from;
}
// The same, put into the mutation.
void SetDrawnTimestamp(Timestamp drawn, Mutation* mutation);

// The kNotFound of an operation on a table that does not exist.
absl::Status UnknownTable(const std::string& name);
// The kAlreadyExists of creating a table that does.
absl::Status TableExists(const std::string& name);
// The kFailedPrecondition of any call after Close.
absl::Status StoreClosed();

}  // namespace percolator

#endif  // PERCOLATOR_STORE_VALIDATE_H_
