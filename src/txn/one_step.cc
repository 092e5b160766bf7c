// SPDX-License-Identifier: Apache-2.0

#include "src/txn/one_step.h"

#include <utility>

#include "absl/status/status.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/txn/mark.h"
#include "src/txn/outcome.h"
#include "src/txn/prewrite.h"

namespace percolator {
namespace {

RowMutation BuildOneStepRow(const RowWrites& row, Timestamp start_ts) {
  RowMutation mutation{row.table, row.row, MayWrite(row, start_ts), {}};
  mutation.mutations.reserve(row.cells.size());
  for (const CellWrite& cell : row.cells) {
    if (HasDataCell(cell.lock)) {
      mutation.mutations.push_back(Mutation::Set(Family::kData, cell.column, start_ts, cell.long_value));
    }
    mutation.mutations.push_back(
        Mutation::Set(Family::kWrite, cell.column, JointMutation::AtCommit(), EncodeRecordOf(cell.lock, start_ts)));
    // N1: the mark is written with the record. There is no earlier step that could have written a pending one.
    if (!cell.lock.observed) continue;
    mutation.mutations.push_back(
        Mutation::Set(Family::kNotify, cell.column, JointMutation::AtCommit(), EncodeMark({cell.lock.depth})));
  }
  return mutation;
}

}  // namespace

absl::Status CheckAge(Environment& env, Timestamp start_ts, Duration age) {
  if (age < env.options.gc_retention / 2) return absl::OkStatus();
  const absl::StatusOr<Timestamp> safe_point = env.store->SafePoint();
  if (!safe_point.ok() || start_ts > *safe_point) return absl::OkStatus();  // the store decides
  return absl::OutOfRangeError(StrCat("transaction ", start_ts.ToString(), " is older than the safe point ",
                                      safe_point->ToString(), "; begin a new one"));
}

CommitResult CommitInOneStep(Environment& env, const Writes& writes, const Deadline& deadline) {
  PERCOLATOR_DCHECK(env.store->CanMutateTogether());
  PERCOLATOR_DCHECK(writes.has_primary());
  JointMutation mutation{writes.start_ts, {}};
  mutation.rows.reserve(writes.rows.size());
  for (const RowWrites& row : writes.rows) mutation.rows.push_back(BuildOneStepRow(row, writes.start_ts));
  AddMarks(writes, JointMutation::AtCommit(), &mutation.rows);
  AddRemoval(writes, &mutation.rows);
  for (Backoff backoff(env.runtime);; backoff.Wait()) {
    const absl::StatusOr<JointResult> result = env.store->MutateTogether(mutation, env.oracle.get());
    if (result.ok() && result->applied) return CommittedAt(writes.primary(), writes.start_ts, result->timestamp);
    if (!result.ok()) {
      // A full disk is not a conflict: another attempt would not help.
      if (CertainlyNotApplied(result.status()) || absl::IsResourceExhausted(result.status())) {
        return SettleRefusal(env, writes, result.status(), deadline);
      }
      // The mutation may have been applied, or may still be. The primary's row decides; if it has no verdict yet, a
      // marker there becomes one.
      return ResolveOutcome(env, writes.primary(), writes.start_ts, deadline);
    }
    const absl::StatusOr<Obstacle> obstacle = FindObstacle(env, writes.rows[result->failed_row], writes.start_ts);
    if (obstacle.ok() && *obstacle != Obstacle::kNone) {
      // A duplicate of this mutation came first, and the store did not report that.
      return ResolveOutcome(env, writes.primary(), writes.start_ts, deadline);
    }
    if (!obstacle.ok() && !IsTransient(obstacle.status()))
      return SettleRefusal(env, writes, obstacle.status(), deadline);
    if (deadline.passed()) {
      return SettleRefusal(
          env, writes,
          absl::DeadlineExceededError(StrCat("transaction ", writes.start_ts.ToString(), " (primary ",
                                             ToString(writes.primary()), ") was not committed in ", deadline.waited())),
          deadline);
    }
  }
}

}  // namespace percolator
