// SPDX-License-Identifier: Apache-2.0

// Error codes, and the evidence that an error carries.
//
// Every call that can fail returns an absl::Status or absl::StatusOr. The code says what the caller
// may do:
//
//   kAborted             a conflict with another transaction: run the whole transaction again
//                        (Cluster::Transact does)
//   kUnknown             the outcome of a commit is unknown (Cluster::Resolve determines it)
//   kUnavailable         a component could not be reached: the call may be retried
//   kDeadlineExceeded    the call's timeout passed: as kUnavailable. A commit with this error did
//                        not happen
//   kOutOfRange          the snapshot is too old: garbage collection may have removed what it would
//                        read
//   kInvalidArgument     a limit was exceeded or a name is malformed: fix the call
//   kNotFound            the table, or another thing that the call names, does not exist
//   kUnimplemented       the server does not support the call; for example, an old server has no
//                        reverse scans
//   kAlreadyExists       a table of that name exists
//   kFailedPrecondition  misuse, a closed cluster, or a component that has stopped: do not retry
//                        until that is fixed
//   kResourceExhausted   the disk is full, there are too many tables, or a request or a row is too
//                        large
//   kDataLoss            stored bytes cannot be read
//   kInternal            a load function threw an exception, or the store failed in an unexpected
//                        way
//
// A conflict carries evidence (percolator/conflict.h).

#ifndef PERCOLATOR_STATUS_H_
#define PERCOLATOR_STATUS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "percolator/types.h"

namespace percolator {

// The result of a commit. The three outcomes call for different reactions; do not treat kUnknown as
// kAborted.
struct [[nodiscard]] CommitResult {
  enum class Outcome : uint8_t {
    kCommitted,  // durable, and visible to every transaction that starts from now on
    kAborted,    // not visible, now or later
    // One of the two: the primary's row could not be reached, so Cluster::Resolve determines the
    // outcome later; or the client was paused for longer than the retention, and garbage collection
    // has removed the answer.
    kUnknown,
  };
  Outcome outcome = Outcome::kUnknown;
  Timestamp start_ts = {};
  Timestamp commit_ts = {};  // kCommitted only; zero if nothing was written
  CellName primary = {};     // the cell that records the outcome
  absl::Status status = {};  // OK if committed

  bool committed() const { return outcome == Outcome::kCommitted; }
};

// Returns whether the transaction lost against another one. Running it again may succeed.
bool IsConflict(const absl::Status& status);
// Returns whether the snapshot is older than what garbage collection keeps.
bool IsSnapshotTooOld(const absl::Status& status);
// Returns whether the same call may succeed later.
bool IsTransient(const absl::Status& status);
// Returns whether the call failed because its cluster is closed.
bool IsClosed(const absl::Status& status);

// Returns the argument for Cluster::Resolve if `status` is of a commit whose outcome is unknown, or
// nullopt.
std::optional<CommitResult> GetUnknownCommit(const absl::Status& status);

}  // namespace percolator

#endif  // PERCOLATOR_STATUS_H_
