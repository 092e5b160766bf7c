// The one-step commit: the whole transaction in one joint mutation, where one store holds all its rows.
//
// It takes the place of both phases, because nobody can come between: the store checks the conditions of all prewrites,
// draws the commit timestamp while the rows are closed to readers, and writes all records at once (store.h,
// MutateTogether). T6 holds as in two phases: what was said of the locks there is said of the closed rows here, and a
// reader whose timestamp is later than the commit's waits for them to open (T8). The primary's record is the verdict here
// too, and a marker in its row stops a late duplicate.

#ifndef PERCOLATOR_TXN_ONE_STEP_H_
#define PERCOLATOR_TXN_ONE_STEP_H_

#include "absl/status/status.h"
#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// G7: once a one-step commit is sent, a refusal because of the safe point leaves its outcome unknown. Before that it is an abort.
// So a transaction that is old enough to be refused asks first. kOutOfRange: it would be refused.
absl::Status CheckAge(Environment& env, Timestamp start_ts, Duration age);

// REQUIRES: env.store->CanMutateTogether().
CommitResult CommitInOneStep(Environment& env, const Writes& writes, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ONE_STEP_H_
