// What went wrong, and what to do about it.
//
// Every call that can fail returns an absl::Status or StatusOr. The code says what the caller may do:
//
//   kAborted             a conflict with another transaction: run the whole transaction again (Cluster::Transact does)
//   kUnknown             the outcome of a commit is not known: it may or may not have happened (Cluster::Resolve tells)
//   kUnavailable         something could not be reached: the same call may be tried again
//   kDeadlineExceeded    the deadline of the call passed; as kUnavailable. A commit that says so did not happen
//   kOutOfRange          the snapshot is too old: what it would read may have been collected
//   kInvalidArgument     a limit exceeded or a name refused: do not retry, fix the call
//   kNotFound            no such table
//   kAlreadyExists       there is a table of that name
//   kCancelled           garbage collection was stopped because the cluster is being closed
//   kFailedPrecondition  misuse, or a component that has stopped: do not retry until something is fixed
//   kResourceExhausted   the disk is full
//   kDataLoss            stored bytes can't be read
//
// A conflict carries its evidence: which cell, and whose lock or write stood in the way.

#ifndef PERCOLATOR_STATUS_H_
#define PERCOLATOR_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "percolator/timestamp.h"

namespace percolator {

// A cell as users name it.
struct CellName {
  std::string table;
  std::string row;
  std::string column;

  friend auto operator<=>(const CellName&, const CellName&) = default;
};

// Why a transaction could not commit.
struct Conflict {
  enum class Kind : uint8_t {
    kNewerWrite = 0,  // another transaction committed a write to the cell after this one started
    kLocked = 1,      // another transaction holds the cell's lock, and seems to be alive
    kRolledBack = 2,  // somebody took this transaction for dead and rolled it back
  };
  Kind kind = Kind::kNewerWrite;
  CellName cell;
  Timestamp start_ts;         // of the transaction that failed
  Timestamp other_start_ts;   // of the one in its way; zero if not known
  Timestamp other_commit_ts;  // kNewerWrite: when that committed

  friend bool operator==(const Conflict&, const Conflict&) = default;
};

// The transaction lost against another; running it again may succeed.
bool IsConflict(const absl::Status& status);
// The snapshot lies before what garbage collection keeps.
bool IsSnapshotTooOld(const absl::Status& status);
// A passing condition: the same call may succeed later.
bool IsTransient(const absl::Status& status);

// The evidence of a conflict; absent if the status is none.
std::optional<Conflict> ConflictOf(const absl::Status& status);

// A kAborted status with a text made from the conflict, and the conflict itself.
absl::Status ConflictError(const Conflict& conflict);

}  // namespace percolator

#endif  // PERCOLATOR_STATUS_H_
