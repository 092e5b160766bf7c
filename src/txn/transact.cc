#include "src/txn/transact.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/mutant.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// Between a conflict and the next attempt.
constexpr Duration kFirstRetry = std::chrono::microseconds(100);
constexpr Duration kLastRetry = std::chrono::milliseconds(100);

// One transaction: the function, and its commit. `last` is for a mutant.
absl::StatusOr<Timestamp> Attempt(const std::shared_ptr<Engine>& engine,
                                  absl::FunctionRef<absl::Status(ReadWrite& t)> fn, const TransactionOptions& options,
                                  size_t* marks, std::optional<WriteBuffer>* last) {
  Transaction t(engine, options);
  if (MutantOn(Mutant::kRetryKeepsWrites) && last->has_value()) {
    t.core().TakeWrites(**last);
  } else {
    if (absl::Status s = fn(t); !s.ok()) return s;
  }
  if (marks != nullptr) *marks = t.core().CountMarks();
  const CommitResult result = t.Commit();
  if (MutantOn(Mutant::kRetryKeepsWrites)) *last = t.core().writes();
  if (!result.committed()) return result.status;
  return result.commit_ts;
}

}  // namespace

absl::StatusOr<Timestamp> RunTransaction(const std::shared_ptr<Engine>& engine,
                                         absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                                         const TransactOptions& options, size_t* marks) {
  if (options.attempts < 1) return absl::InvalidArgumentError("attempts must be at least 1");
  Runtime* const runtime = engine->env.runtime;
  const Duration end = runtime->Elapsed() + std::min(options.deadline, kForever);
  Backoff backoff(runtime, kFirstRetry, kLastRetry);
  std::optional<WriteBuffer> last;
  for (int attempt = 1;; ++attempt) {
    if (engine->closed() || engine->forked()) return engine->Closed();
    if (marks != nullptr) *marks = 0;
    const Duration left = std::max(end - runtime->Elapsed(), Duration(1));
    absl::StatusOr<Timestamp> committed = Attempt(engine, fn, {.deadline = left, .kind = options.kind}, marks, &last);
    // T12: the function is run again, on a new snapshot; what it wrote is forgotten.
    if (!absl::IsAborted(committed.status())) return committed;
    if (attempt >= options.attempts || runtime->Elapsed() >= end) return committed;
    backoff.Wait();
  }
}

}  // namespace percolator
