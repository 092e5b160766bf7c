// SPDX-License-Identifier: Apache-2.0

#include "src/txn/outcome.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "src/base/check.h"
#include "src/base/coding.h"
#include "src/base/errors.h"
#include "src/base/strings.h"
#include "src/txn/resolve.h"

namespace percolator {
namespace {

constexpr char kUnknownPayload[] = "percolator/unknown-commit";

absl::Status RolledBackByOthers(const CellName& primary, Timestamp start_ts) {
  return ConflictError({.kind = Conflict::Kind::kRolledBack, .cell = primary, .start_ts = start_ts});
}

// Returns whether `why`, the answer to a request to commit, proves that no copy of the request was applied or ever will
// be.
bool IsFinalAbort(Environment& env, Timestamp start_ts, const absl::Status& why) {
  if (const std::optional<Conflict> conflict = GetConflict(why)) {
    switch (conflict->kind) {
      case Conflict::Kind::kRolledBack:
        return true;
      case Conflict::Kind::kLocked:
        return false;  // the lock may go away, and then a late copy would be applied
      case Conflict::Kind::kNewerWrite: {
        // G7: the newer write refuses every later copy. An earlier copy would have left a record. That none was found
        // proves something only above the safe point. The safe point is read after the row was.
        const absl::StatusOr<Timestamp> safe_point = env.store->SafePointOfReads();
        return safe_point.ok() && start_ts > *safe_point;
      }
    }
  }
  // G7: the safe point may have passed between two copies of the request, and the record of the first may be collected.
  // A stopped store may have applied an earlier copy.
  return CertainlyNotApplied(why) && !absl::IsFailedPrecondition(why) && !absl::IsOutOfRange(why);
}

}  // namespace

CommitResult FromVerdict(const Verdict& verdict, const CellName& primary, Timestamp start_ts) {
  PERCOLATOR_DCHECK(verdict.kind != Verdict::Kind::kPending);
  return verdict.kind == Verdict::Kind::kCommitted
             ? CommittedAt(primary, start_ts, verdict.commit_ts)
             : AbortedBy(primary, start_ts, RolledBackByOthers(primary, start_ts));
}

CommitResult CommittedAt(CellName primary, Timestamp start_ts, Timestamp commit_ts) {
  return {.outcome = CommitResult::Outcome::kCommitted,
          .start_ts = start_ts,
          .commit_ts = commit_ts,
          .primary = std::move(primary),
          .status = absl::OkStatus()};
}

CommitResult AbortedBy(CellName primary, Timestamp start_ts, absl::Status why) {
  PERCOLATOR_DCHECK(!why.ok());
  return {.outcome = CommitResult::Outcome::kAborted,
          .start_ts = start_ts,
          .commit_ts = {},
          .primary = std::move(primary),
          .status = std::move(why)};
}

CommitResult UnknownBecause(CellName primary, Timestamp start_ts, const absl::Status& why) {
  PERCOLATOR_DCHECK(!why.ok());
  absl::Status status = absl::UnknownError(StrCat("outcome of transaction ", start_ts.ToString(), " unknown (primary ",
                                                  ToString(primary), "): ", why.message(), "; call Cluster::Resolve"));
  std::string payload;
  AppendFixed64(&payload, start_ts.value());
  AppendOrderedString(&payload, primary.table);
  AppendOrderedString(&payload, primary.row);
  AppendOrderedString(&payload, primary.column);
  status.SetPayload(kUnknownPayload, absl::Cord(std::move(payload)));
  return {.outcome = CommitResult::Outcome::kUnknown,
          .start_ts = start_ts,
          .commit_ts = {},
          .primary = std::move(primary),
          .status = std::move(status)};
}

std::optional<CommitResult> GetUnknownCommit(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kUnknownPayload);
  if (!payload.has_value()) return std::nullopt;
  const std::string bytes(*payload);
  std::string_view in = bytes;
  uint64_t start_ts = 0;
  CommitResult result;
  if (!ConsumeFixed64(&in, &start_ts) || !ConsumeOrderedString(&in, &result.primary.table) ||
      !ConsumeOrderedString(&in, &result.primary.row) || !ConsumeOrderedString(&in, &result.primary.column)) {
    return std::nullopt;
  }
  result.start_ts = Timestamp(start_ts);
  result.status = status;
  return result;
}

absl::StatusOr<Verdict> DecideOwnInTime(Environment& env, const CellName& primary, Timestamp start_ts,
                                        const Deadline& deadline) {
  return RetryUntil(deadline, [&] { return DecideOwn(env, primary, start_ts); });
}

CommitResult ResolveOutcome(Environment& env, const CellName& primary, Timestamp start_ts, const Deadline& deadline) {
  const absl::StatusOr<Verdict> verdict = DecideOwnInTime(env, primary, start_ts, deadline);
  return verdict.ok() ? FromVerdict(*verdict, primary, start_ts) : UnknownBecause(primary, start_ts, verdict.status());
}

CommitResult SettleRefusal(Environment& env, const Writes& writes, const absl::Status& why, const Deadline& deadline) {
  if (IsFinalAbort(env, writes.start_ts, why)) return AbortedBy(writes.primary(), writes.start_ts, why);
  const absl::StatusOr<Verdict> verdict = DecideOwnInTime(env, writes.primary(), writes.start_ts, deadline);
  if (verdict.ok() && verdict->kind == Verdict::Kind::kCommitted) {
    return CommittedAt(writes.primary(), writes.start_ts, verdict->commit_ts);
  }
  // A store that takes no more writes takes neither the marker nor a duplicate.
  const bool stopped = absl::IsFailedPrecondition(why) && absl::IsFailedPrecondition(verdict.status());
  if (verdict.ok() || stopped) return AbortedBy(writes.primary(), writes.start_ts, why);
  return UnknownBecause(writes.primary(), writes.start_ts, verdict.status());
}

}  // namespace percolator
