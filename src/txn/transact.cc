// SPDX-License-Identifier: Apache-2.0

#include "src/txn/transact.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "percolator/conflict.h"
#include "src/base/retry.h"
#include "src/txn/transaction_core.h"
#include "src/txn/turns.h"

namespace percolator {
namespace {

// The delay between a conflict and the next attempt.
constexpr Duration kFirstRetry = std::chrono::microseconds(100);
constexpr Duration kLastRetry = std::chrono::milliseconds(100);

// Returns `why` no commit was attempted, and stores it in `result` unless that is null.
absl::Status Uncommitted(const absl::Status& why, CommitResult* result) {
  if (result != nullptr) *result = {.outcome = CommitResult::Outcome::kAborted, .status = why};
  return why;
}

// The attempts to run one function in a transaction.
class Attempts {
 public:
  Attempts(const std::shared_ptr<Engine>& engine, absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
           const TransactionOptions& options)
      : engine_(engine),
        fn_(fn),
        options_(options),
        runtime_(engine->env.runtime),
        deadline_(runtime_, options.timeout),
        backoff_(runtime_, kFirstRetry, kLastRetry),
        turn_(&engine->turns()) {}

  absl::Status Run(CommitResult* result, size_t* marks) {
    TransactionOptions once = options_;
    for (;;) {
      if (engine_->closed() || engine_->forked()) return Uncommitted(engine_->Closed(), result);
      if (marks != nullptr) *marks = 0;
      once.timeout = std::max(deadline_.left(), Duration(1));
      std::optional<CellName> lost;
      const Duration begun = runtime_->Elapsed();
      absl::Status status = RunOnce(once, result, marks, &lost);
      // T12: the function is run again, on a new snapshot; what it wrote is forgotten.
      if (!absl::IsAborted(status)) return status;
      if (!held_back_ && (++failures_ >= options_.max_attempts || deadline_.passed())) return status;
      WaitAfter(lost, runtime_->Elapsed() - begun);
    }
  }

 private:
  // One transaction: the function, and its commit. On a conflict, `lost` receives the cell.
  absl::Status RunOnce(const TransactionOptions& options, CommitResult* result, size_t* marks,
                       std::optional<CellName>* lost) {
    held_back_ = false;
    Transaction t(engine_, options);
    if (absl::Status s = fn_(t); !s.ok()) {
      if (const std::optional<Conflict> conflict = GetConflict(s)) *lost = conflict->cell;
      return Uncommitted(s, result);
    }
    const WriteBuffer& writes = t.core().writes();
    if (marks != nullptr) *marks = writes.CountMarks(engine_->env.observed);
    if (MayBeHeldBack()) {
      *lost = engine_->turns().FindTaken(writes.cells());
      held_back_ = lost->has_value();
      if (held_back_) return absl::AbortedError("another transaction goes first");
    }
    if (engine_->turns().busy()) engine_->turns().NoteCommit(writes.cells());
    CommitResult committed = t.Commit();
    absl::Status status = committed.status;
    if (const std::optional<Conflict> conflict = GetConflict(status)) *lost = conflict->cell;
    if (result != nullptr) *result = std::move(committed);
    return status;
  }

  // A transaction that has a turn somewhere is not held back elsewhere, so two of them never wait for each other.
  bool MayBeHeldBack() const {
    return engine_->turns().busy() && !turn_.granted() && options_.max_attempts > 1 && !deadline_.passed();
  }

  void WaitAfter(const std::optional<CellName>& lost, Duration run) {
    // Having lost with a turn, or without another transaction of this process to wait for, only time helps.
    if (turn_.granted() || !lost.has_value()) {
      turn_.End();
      backoff_.Wait();
    }
    if (lost.has_value()) turn_.Wait(*lost, run, deadline_);
  }

  const std::shared_ptr<Engine>& engine_;
  const absl::FunctionRef<absl::Status(ReadWrite& t)> fn_;
  const TransactionOptions& options_;
  Runtime* const runtime_;
  const Deadline deadline_;
  Backoff backoff_;
  Turns::Turn turn_;
  int failures_ = 0;
  bool held_back_ = false;
};

}  // namespace

absl::Status RunTransaction(const std::shared_ptr<Engine>& engine, absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                            const TransactionOptions& options, CommitResult* result, size_t* marks) {
  if (options.max_attempts < 1) {
    return Uncommitted(absl::InvalidArgumentError("max_attempts must be at least 1"), result);
  }
  return Attempts(engine, fn, options).Run(result, marks);
}

}  // namespace percolator
