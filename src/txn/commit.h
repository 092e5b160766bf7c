// SPDX-License-Identifier: Apache-2.0

// Commit: the second phase (figure 6, Commit).
//
// One conditional mutation replaces the primary's lock by a write record, together with the other cells of its row:
// this is the commit point. If its answer is lost, it is repeated; if the lock is then gone, the primary's row shows
// the outcome (T10). The rows of the secondaries follow, by BuildSecondaryCommitRows.

#ifndef PERCOLATOR_TXN_COMMIT_H_
#define PERCOLATOR_TXN_COMMIT_H_

#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Commits the primary's row at commit_ts. Does not roll back: see RollBackOwn.
CommitResult CommitPrimary(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline);

// Rolls the transaction back in all rows. Called by its owner, if it has not sent a commit or knows that the
// transaction was rolled back. Other clients roll back the rows that it cannot reach in time.
void RollBackOwn(Environment& env, const Writes& writes, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_COMMIT_H_
