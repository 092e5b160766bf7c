// SPDX-License-Identifier: Apache-2.0

#include "src/txn/commit.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/errors.h"
#include "src/txn/apply.h"
#include "src/txn/outcome.h"

namespace percolator {

CommitResult CommitPrimary(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline) {
  const CellName primary = writes.primary();
  std::vector<RowMutation> mutations;
  mutations.push_back(BuildPrimaryCommitRow(writes, commit_ts));
  bool may_be_applied = false;
  for (Backoff backoff(env.runtime);; backoff.Wait()) {
    const absl::StatusOr<MutateResult> result = env.store->Mutate(mutations)[0];
    if (result.ok() && *result == MutateResult::kApplied) return CommittedAt(primary, writes.start_ts, commit_ts);
    if (result.ok())
      return ResolveOutcome(env, primary, writes.start_ts, deadline);  // the lock is gone, or was replaced
    if (CertainlyNotApplied(result.status()) && !may_be_applied) {
      return SettleRefusal(env, writes, result.status(), deadline);
    }
    may_be_applied = true;
    if (!IsTransient(result.status()) || deadline.passed()) {
      return UnknownBecause(primary, writes.start_ts, result.status());
    }
  }
}

void RollBackOwn(Environment& env, const Writes& writes, const Deadline& deadline) {
  std::vector<RowMutation> mutations;
  for (const RowWrites& row : writes.rows) {
    mutations.push_back(BuildRollbackRow(row, writes.start_ts));
    // The row may have any part of the transaction, and its late prewrites find the marker: it will never commit.
    mutations.back().condition = {};
  }
  (void)ApplyInTime(env, std::move(mutations), deadline);  // other clients roll back the rest when they find it
}

}  // namespace percolator
