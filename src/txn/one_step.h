// SPDX-License-Identifier: Apache-2.0

// The one-step commit: the whole transaction in one joint mutation, where one store holds all its rows.
//
// It replaces both phases, because no other transaction can come between: the store checks the conditions of all
// prewrites, draws the commit timestamp while the rows are closed to readers, and writes all records at once (store.h,
// MutateTogether). T6 holds as in two phases, with closed rows instead of locks: a reader whose timestamp is later than
// the commit's waits for them to open (T8). The primary's record is the verdict here too, and a marker in its row stops
// a late duplicate.

#ifndef PERCOLATOR_TXN_ONE_STEP_H_
#define PERCOLATOR_TXN_ONE_STEP_H_

#include "absl/status/status.h"
#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// G7: a refusal because of the safe point leaves the outcome of a one-step commit unknown once it has been sent; before
// that, it is an abort. So a transaction that is old enough to be refused checks first. Returns OutOfRange if it would
// be refused.
absl::Status CheckAge(Environment& env, Timestamp start_ts, Duration age);

// REQUIRES: env.store->CanMutateTogether().
CommitResult CommitInOneStep(Environment& env, const Writes& writes, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ONE_STEP_H_
