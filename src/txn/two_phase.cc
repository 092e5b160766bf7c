// SPDX-License-Identifier: Apache-2.0

#include "src/txn/two_phase.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/strings.h"
#include "src/txn/commit.h"
#include "src/txn/outcome.h"
#include "src/txn/prewrite.h"
#include "src/txn/publish_marks.h"

namespace percolator {

CommitResult CommitInTwoPhases(Environment& env, LockKeeper* keeper, SecondaryQueue* secondaries, const Writes& writes,
                               const Deadline& deadline) {
  const Deadline cleanup(env.runtime, env.options.lock_lease);
  const auto abort = [&](const absl::Status& why) {
    RollBackOwn(env, writes, cleanup);
    return AbortedBy(writes.primary(), writes.start_ts, why);
  };
  const LockKeeper::Membership kept(keeper, writes);

  const absl::StatusOr<std::optional<Timestamp>> drawn = Prewrite(env, writes, deadline);
  if (!drawn.ok()) return abort(drawn.status());
  // T6: drawn after the last prewrite was applied. So a transaction that starts later finds the locks.
  const absl::StatusOr<Timestamp> commit_ts =
      drawn->has_value() ? absl::StatusOr<Timestamp>(**drawn) : DrawTimestamp(env, [&] { return deadline; });
  if (!commit_ts.ok()) return abort(commit_ts.status());
  if (*commit_ts <= writes.start_ts)
    return abort(absl::InternalError(StrCat("the oracle's timestamps went backwards: commit timestamp ",
                                            commit_ts->ToString(), " of transaction ", writes.start_ts.ToString())));

  // N9: before the commit point, so that a client that dies there has set the marks.
  if (absl::Status s = WriteMarks(env, writes, *commit_ts, deadline); !s.ok()) return abort(s);

  std::vector<RowMutation> others = BuildSecondaryCommitRows(writes, *commit_ts);
  CommitResult result = CommitPrimary(env, writes, *commit_ts, deadline);
  if (result.committed()) {
    if (!others.empty() && !secondaries->Add(&others)) SecondaryQueue::Apply(&env, std::move(others));
  } else if (result.outcome == CommitResult::Outcome::kAborted) {
    RollBackOwn(env, writes, cleanup);
  }
  return result;
}

}  // namespace percolator
