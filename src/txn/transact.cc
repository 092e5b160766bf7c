#include "src/txn/transact.h"

#include <algorithm>
#include <utility>

#include "src/base/retry.h"
#include "src/txn/transaction_core.h"

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

// Runs the function in one transaction, and commits it.
absl::Status Attempt(const std::shared_ptr<Engine>& engine, absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                     const TransactionOptions& options, CommitResult* result, size_t* marks) {
  Transaction t(engine, options);
  if (absl::Status s = fn(t); !s.ok()) return Uncommitted(s, result);
  if (marks != nullptr) *marks = t.core().writes().CountMarks(engine->env.observed);
  CommitResult committed = t.Commit();
  absl::Status status = committed.status;
  if (result != nullptr) *result = std::move(committed);
  return status;
}

}  // namespace

absl::Status RunTransaction(const std::shared_ptr<Engine>& engine, absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                            const TransactionOptions& options, CommitResult* result, size_t* marks) {
  if (options.max_attempts < 1) {
    return Uncommitted(absl::InvalidArgumentError("max_attempts must be at least 1"), result);
  }
  Runtime* const runtime = engine->env.runtime;
  const Deadline deadline(runtime, options.timeout);
  Backoff backoff(runtime, kFirstRetry, kLastRetry);
  TransactionOptions once = options;
  for (int attempt = 1;; ++attempt) {
    if (engine->closed() || engine->forked()) return Uncommitted(engine->Closed(), result);
    if (marks != nullptr) *marks = 0;
    once.timeout = std::max(deadline.left(), Duration(1));
    absl::Status status = Attempt(engine, fn, once, result, marks);
    // T12: the function runs again, on a new snapshot; the writes of the failed attempt are dropped.
    if (!absl::IsAborted(status)) return status;
    if (attempt >= options.max_attempts || deadline.passed()) return status;
    backoff.Wait();
  }
}

}  // namespace percolator
