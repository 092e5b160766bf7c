// Commit: the second phase (figure 6, Commit).
//
// Replacing the primary's lock by a write record, with the other cells of its row, is the commit point: one conditional
// mutation. If its answer is lost it is repeated, and if the lock is gone then, the primary's row tells which it was (T10). The
// rows of the secondaries follow, by BuildSecondaryCommitRows.

#ifndef PERCOLATOR_TXN_COMMIT_H_
#define PERCOLATOR_TXN_COMMIT_H_

#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Commits the primary's row at commit_ts. Does not roll back: see RollBackOwn.
CommitResult CommitPrimary(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline);

// Rolls the transaction back everywhere: for its owner, if it has not sent a commit or knows that it was rolled back. What
// can't be reached in time is left to others.
void RollBackOwn(Environment& env, const Writes& writes, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_COMMIT_H_
