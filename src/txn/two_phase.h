// SPDX-License-Identifier: Apache-2.0

// The commit in two phases: figure 6 of the paper.
//
//     lock every cell (prewrite.h)                   a failure up to here rolls back
//     draw the commit timestamp (T6)
//     write the weak notifications' marks (N9)
//     commit the primary (commit.h)                  the commit point
//     commit the secondaries, in the background      from here on, any other client would finish it
//
// one_step.h replaces it where one store holds all rows.

#ifndef PERCOLATOR_TXN_TWO_PHASE_H_
#define PERCOLATOR_TXN_TWO_PHASE_H_

#include "percolator/status.h"
#include "src/txn/background.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// `keeper` refreshes the primary's lock until this returns. `secondaries` commits the other rows in the background. If it is
// full, this function commits them before it returns.
CommitResult CommitInTwoPhases(Environment& env, LockKeeper* keeper, SecondaryQueue* secondaries, const Writes& writes,
                               const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TWO_PHASE_H_
