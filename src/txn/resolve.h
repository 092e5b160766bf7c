// Lock resolution: what to do about a lock in one's way (sections 2.2 and 2.3 of the paper).
//
// The primary decides (T1, T13). Its row says one of four things of the transaction that started at s:
//
//     a write record with start_ts s     committed, at the record's timestamp: roll forward
//     a marker at s                      rolled back: roll back
//     a lock at s                        undecided: wait, or roll the primary back if its owner is gone
//     none of these                      undecided, the primary's prewrite has not arrived (or never will): wait, or
//                                        leave a marker, so that it can't arrive any more, if the owner is gone
//
// Only then is the lock itself touched, conditionally on being exactly that lock: another may stand there by now. An owner is
// gone if its session is, or if it has not refreshed its lock for longer than the lease, by the oracle's time. A wrong judgement
// costs an abort and never more.

#ifndef PERCOLATOR_TXN_RESOLVE_H_
#define PERCOLATOR_TXN_RESOLVE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/txn/environment.h"
#include "src/txn/lock.h"
#include "src/txn/verdict.h"

namespace percolator {

// What to do with an undecided transaction whose owner seems to be alive. One whose owner is dead is rolled back.
enum class LiveLocks {
  kKeep,
  kRollBack,  // for garbage collection
};

// Returns the verdict on the transaction of a lock. Decides it if it is undecided and may be rolled back. A transient error
// may be tried again.
absl::StatusOr<Verdict> Decide(Environment& env, const FoundLock& met, LiveLocks live_locks);

// The same for the owner of the transaction, who wants to know what became of its commit and has given up on it.
// kOutOfRange: it is older than the safe point, and what garbage collection has left of it does not tell.
absl::StatusOr<Verdict> DecideOwn(Environment& env, const CellName& primary, Timestamp start_ts);

// What Decide would find, without doing anything about it.
struct LockStatus {
  std::optional<Verdict> verdict;  // absent: undecided
  bool alive = false;              // undecided: its owner seems to live
};
absl::StatusOr<LockStatus> InspectLock(Environment& env, const FoundLock& met);

// Decides the transactions of these locks, and carries the verdicts out in the rows where the locks are. Returns whether
// all are out of the way; false: the owner of one is alive.
absl::StatusOr<bool> ResolveLocks(Environment& env, const std::vector<FoundLock>& locks, LiveLocks live_locks);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_RESOLVE_H_
