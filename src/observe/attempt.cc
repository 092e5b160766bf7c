// SPDX-License-Identifier: Apache-2.0

#include "src/observe/attempt.h"

#include <cstdint>

#include "src/base/strings.h"

namespace percolator {
namespace {

void TellCommit(const Attempt& attempt, const RunOutcome& outcome, const WorkerOptions& options) {
  if (options.on_commit == nullptr) return;
  try {
    options.on_commit(attempt.observer->info.name, {attempt.request.cell, outcome.change_ts}, outcome.commit_ts);
  } catch (...) {
    // The run has committed, so nothing can report that its listener failed.
  }
}

// Quarantines a cycle at once, and a failure after the last attempt that the observer allows. A foreign observer has
// neither, because it is not run.
std::optional<absl::StatusOr<Timestamp>> QuarantineIfDue(const Attempt& attempt, const RunOutcome& outcome,
                                                         const DispatchCallbacks& callbacks, uint32_t max_chain) {
  const auto quarantine = [&](int attempts, const absl::Status& error) {
    return callbacks.quarantine(attempt.observer->info, attempt.request.cell, outcome.start_ts, attempts, error);
  };
  if (outcome.kind == RunOutcome::Kind::kCycle) {
    return quarantine(attempt.failures,
                      absl::FailedPreconditionError(
                          StrCat("not run: chain of more than ", max_chain,
                                 " notifications (WorkerOptions::max_chain); the observers probably form a cycle")));
  }
  if (outcome.kind != RunOutcome::Kind::kFailed) return std::nullopt;
  const int attempts = attempt.failures + 1;
  if (attempts < attempt.observer->own->spec().max_attempts) return std::nullopt;
  return quarantine(attempts, outcome.status);
}

}  // namespace

AttemptResult Execute(const Attempt& attempt, const DispatchCallbacks& callbacks, const WorkerOptions& options) {
  AttemptResult result;
  if (attempt.claim_refused || (attempt.ask_claim && !callbacks.claim(attempt.request.cell))) {
    result.claim_refused = true;
    return result;
  }
  result.outcome = callbacks.run(attempt.request);
  if (result.outcome.kind == RunOutcome::Kind::kCommitted) TellCommit(attempt, result.outcome, options);
  result.quarantined_at = QuarantineIfDue(attempt, result.outcome, callbacks, options.max_chain);
  return result;
}

}  // namespace percolator
