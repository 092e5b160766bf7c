// SPDX-License-Identifier: Apache-2.0

// Lock resolution: what to do with the lock of another transaction (sections 2.2 and 2.3 of the paper).
//
// The primary decides (T1, T13). Its row says one of four things about the transaction that started at s:
//
//     a write record with start_ts s     committed, at the record's timestamp: roll forward
//     a marker at s                      rolled back: roll back
//     a lock at s                        undecided: wait, or roll the primary back if its owner is gone
//     none of these                      undecided; the primary's prewrite has not arrived, or never will: wait, or leave
//                                        a marker, so that it cannot arrive any more, if the owner is gone
//
// Only then is the lock itself changed, on the condition that it is exactly that lock: another may be there by now. An
// owner is gone if its session is, or if it has not refreshed its lock for longer than the lease, by the oracle's time.
// A wrong judgement costs an aborted transaction, and nothing else.

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

// What to do with an undecided transaction whose owner seems to be alive. One whose owner is dead is always rolled
// back.
enum class LiveLocks {
  kKeep,
  kRollBack,  // for garbage collection
};

// Returns the verdict on the transaction of a lock. Decides it if it is undecided and may be rolled back. The caller
// may retry after a transient error.
absl::StatusOr<Verdict> Decide(Environment& env, const FoundLock& met, LiveLocks live_locks);

// The same for the owner of the transaction, which has given up on its commit and asks for its outcome. Returns
// OutOfRange if the transaction is older than the safe point and its records do not show the outcome.
absl::StatusOr<Verdict> DecideOwn(Environment& env, const CellName& primary, Timestamp start_ts);

// What Decide would find. Changes nothing.
struct LockStatus {
  std::optional<Verdict> verdict;  // absent if the transaction is undecided
  bool alive = false;              // whether the owner of an undecided transaction seems to be alive
};
absl::StatusOr<LockStatus> InspectLock(Environment& env, const FoundLock& met);

// Decides the transactions of these locks, and carries the verdicts out in the rows of the locks. Returns whether all
// locks are gone; one stays if its owner is alive.
absl::StatusOr<bool> ResolveLocks(Environment& env, const std::vector<FoundLock>& locks, LiveLocks live_locks);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_RESOLVE_H_
