// Commit: the second phase (figure 6, Commit).
//
// The commit timestamp is drawn after every prewrite was applied (T6). Replacing the primary's lock by a write record,
// with the other cells of its row, is the commit point: one conditional mutation. If its answer is lost it is repeated, and
// if the lock is gone then, the primary's row tells which it was (T10). The rows of the secondaries follow.

#ifndef PERCOLATOR_TXN_COMMIT_H_
#define PERCOLATOR_TXN_COMMIT_H_

#include "percolator/transaction.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Commits the primary's row at commit_ts. Does not roll back: see RollBackOwn.
CommitResult CommitPrimary(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline);

// Ends a commit because of `why`, an answer that says that this request was not applied. A copy of the request may have been
// applied before, or may be applied later (T10, T11). So the transaction is aborted only if `why` excludes both (G7). Otherwise
// a marker at the primary decides; the outcome may then also be committed, or unknown.
CommitResult GiveUpCommit(Environment& env, const Writes& writes, const absl::Status& why, const Deadline& deadline);

// Rolls the transaction back everywhere: for its owner, if it has not sent a commit or knows that it was rolled back. What
// can't be reached in time is left to others.
void RollBackOwn(Environment& env, const Writes& writes, const Deadline& deadline);

// DecideOwn, tried again while the store can't be reached.
absl::StatusOr<Verdict> DecideOwnInTime(Environment& env, const CellName& primary, Timestamp start_ts,
                                        const Deadline& deadline);

// The one true answer to a commit whose outcome is not known. If nobody has decided, decides for a rollback.
CommitResult ResolveOutcome(Environment& env, const CellName& primary, Timestamp start_ts, const Deadline& deadline);

CommitResult FromVerdict(const Verdict& verdict, const CellName& primary, Timestamp start_ts);
CommitResult CommittedAt(CellName primary, Timestamp start_ts, Timestamp commit_ts);
CommitResult AbortedBy(CellName primary, Timestamp start_ts, absl::Status why);
CommitResult UnknownBecause(CellName primary, Timestamp start_ts, const absl::Status& why);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_COMMIT_H_
