// SPDX-License-Identifier: Apache-2.0

// The outcome that a commit reports (T10): committed, aborted or unknown. And how to find it after a request whose
// answer was lost, or that was refused although a copy may have been applied.

#ifndef PERCOLATOR_TXN_OUTCOME_H_
#define PERCOLATOR_TXN_OUTCOME_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/status.h"
#include "src/txn/environment.h"
#include "src/txn/verdict.h"
#include "src/txn/writes.h"

namespace percolator {

CommitResult CommittedAt(CellName primary, Timestamp start_ts, Timestamp commit_ts);
CommitResult AbortedBy(CellName primary, Timestamp start_ts, absl::Status why);
CommitResult UnknownBecause(CellName primary, Timestamp start_ts, const absl::Status& why);
CommitResult FromVerdict(const Verdict& verdict, const CellName& primary, Timestamp start_ts);

// DecideOwn, retried while the store cannot be reached.
absl::StatusOr<Verdict> DecideOwnInTime(Environment& env, const CellName& primary, Timestamp start_ts,
                                        const Deadline& deadline);

// Determines the outcome of a commit that may or may not have happened. If it is undecided, rolls it back.
CommitResult ResolveOutcome(Environment& env, const CellName& primary, Timestamp start_ts, const Deadline& deadline);

// Ends a commit because of `why`, an answer that says that this request was not applied. A copy of the request may have
// been applied before, or may be applied later (T10, T11). So the transaction is aborted only if `why` excludes both
// (G7). Otherwise a marker at the primary decides; the outcome may then also be committed, or unknown.
CommitResult SettleRefusal(Environment& env, const Writes& writes, const absl::Status& why, const Deadline& deadline);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_OUTCOME_H_
