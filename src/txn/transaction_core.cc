// SPDX-License-Identifier: Apache-2.0

#include "src/txn/transaction_core.h"

#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/txn/merged_rows.h"
#include "src/txn/one_step.h"
#include "src/txn/outcome.h"
#include "src/txn/publish_marks.h"
#include "src/txn/two_phase.h"

namespace percolator::internal {

TransactionCore::TransactionCore(std::shared_ptr<Engine> engine, const TransactionOptions& options)
    : owner_(std::move(engine)),
      engine_(owner_.get()),
      is_snapshot_(false),
      deadline_(Deadline(engine_->env.runtime, options.timeout)),
      writes_(engine_->env.options.limits),
      reads_(options.prefetch_profile) {}

TransactionCore::TransactionCore(Engine* engine, const TransactionOptions& options)
    : engine_(engine),
      is_snapshot_(false),
      deadline_(Deadline(engine->env.runtime, options.timeout)),
      writes_(engine->env.options.limits),
      reads_(options.prefetch_profile) {}

TransactionCore::TransactionCore(std::shared_ptr<Engine> engine, Timestamp ts)
    : owner_(std::move(engine)),
      engine_(owner_.get()),
      is_snapshot_(true),
      start_ts_(ts),
      writes_(engine_->env.options.limits) {
  slot_ = engine_->snapshots.Add(ts);
}

// Allowed after Close: it uses memory only.
TransactionCore::~TransactionCore() {
  if (engine_->forked()) return;
  if (start_ts_ != Timestamp()) engine_->snapshots.Remove(slot_, start_ts_);
  reads_.Learn(&engine_->predictor);
}

Deadline TransactionCore::CallDeadline() const {
  const Duration call = engine_->env.options.call_timeout;
  return deadline_.has_value() ? deadline_->AtMost(call) : Deadline(engine_->env.runtime, call);
}

absl::Status TransactionCore::EnsureStarted() {
  if (start_ts_ != Timestamp()) return absl::OkStatus();
  Environment& env = engine_->env;
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp ts, DrawTimestamp(env, [this] { return ReadDeadline(); }));
  start_ts_ = ts;
  started_ = env.runtime->Elapsed();
  slot_ = engine_->snapshots.Add(start_ts_);
  return absl::OkStatus();
}

// --- Reading

absl::Status TransactionCore::MayRead() {
  if (result_.has_value()) return absl::FailedPreconditionError("transaction already committed; begin a new one");
  return write_error_.ok() ? EnsureStarted() : write_error_;
}

absl::Status TransactionCore::Fetch(const std::vector<CellName>& cells) {
  return reads_.Fetch(engine_->env, engine_->predictor, writes_, start_ts_, cells, ReadDeadline());
}

// A snapshot may live long, and many threads may use it: it keeps none of the cells that it read.
absl::StatusOr<std::vector<std::optional<std::string>>> TransactionCore::Get(absl::Span<const CellName> cells) {
  if (is_snapshot_) return GetValues(engine_->env, start_ts_, cells, ReadDeadline());
  PERCOLATOR_RETURN_IF_ERROR(MayRead());
  std::vector<CellName> missing;
  for (const CellName& cell : cells) {
    if (writes_.Find(cell) == nullptr && !reads_.HasValue(cell)) missing.push_back(cell);
  }
  if (!missing.empty()) {
    PERCOLATOR_RETURN_IF_ERROR(Fetch(missing));
  }
  std::vector<std::optional<std::string>> values;
  values.reserve(cells.size());
  for (const CellName& cell : cells) {
    reads_.NoteRead(cell);
    if (const BufferedWrite* own = writes_.Find(cell); own != nullptr) {  // T9
      values.push_back(own->kind == WriteKind::kPut ? std::optional(own->value) : std::nullopt);
    } else {
      values.push_back(reads_.Value(cell, &engine_->env.counters));
    }
  }
  reads_.Shrink();
  return values;
}

absl::StatusOr<std::optional<std::string>> TransactionCore::Get(std::string_view table, std::string_view row,
                                                                std::string_view column) {
  if (is_snapshot_) {
    const auto deadline = [this] { return ReadDeadline(); };
    absl::StatusOr<Version> version = GetCell(engine_->env, start_ts_, {table, row, column}, deadline);
    if (!version.ok()) return std::move(version).status();
    return std::move(version->value);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<std::optional<std::string>> values,
                              Get({CellName{std::string(table), std::string(row), std::string(column)}}));
  return std::move(values.front());
}

absl::StatusOr<std::vector<Version>> TransactionCore::GetVersions(const std::vector<CellName>& cells) {
  PERCOLATOR_RETURN_IF_ERROR(MayRead());
  PERCOLATOR_RETURN_IF_ERROR(Fetch(cells));
  std::vector<Version> versions;
  versions.reserve(cells.size());
  for (const CellName& cell : cells) versions.push_back(*reads_.Find(cell));
  return versions;
}

RowScan TransactionCore::Scan(std::string_view table, ScanOptions options) {
  return RowScan(MergeRows(this, nullptr, table, std::move(options)));
}

// --- Writing

// Retries a check that reads the list of tables, until the call timeout: a failed write cannot be repeated.
absl::Status TransactionCore::RetryCheck(absl::FunctionRef<absl::Status()> check) {
  absl::Status status = check();
  if (status.ok()) return status;
  return RetryAfter(std::move(status), ReadDeadline(), check);
}

absl::Status TransactionCore::Buffer(WriteKind kind, std::string_view table, std::string_view row,
                                     std::string_view column, std::string_view value) {
  if (result_.has_value()) return absl::FailedPreconditionError("transaction already committed; begin a new one");
  PERCOLATOR_RETURN_IF_ERROR(writes_.CheckNames(row, column, value));
  const auto check = [&] { return engine_->tables->CheckWritable(table, column); };
  PERCOLATOR_RETURN_IF_ERROR(RetryCheck(check));
  return writes_.Add(kind, {std::string(table), std::string(row), std::string(column)}, value);
}

absl::Status TransactionCore::Notify(std::string_view table, std::string_view row, std::string_view column) {
  if (result_.has_value()) return absl::FailedPreconditionError("transaction already committed; begin a new one");
  PERCOLATOR_RETURN_IF_ERROR(writes_.CheckNames(row, column, {}));
  const auto check = [&] { return engine_->tables->CheckNotifiable(table, column); };
  PERCOLATOR_RETURN_IF_ERROR(RetryCheck(check));
  return writes_.Notify({std::string(table), std::string(row), std::string(column)});
}

// Finds the version of each verified cell that this transaction relies on: the one that it sees. No newer one can come
// before its lock (T5), so it is still the newest when the transaction commits.
absl::Status TransactionCore::FindVerified() {
  std::vector<WantedCell> missing;
  std::vector<Timestamp*> versions_of_missing;
  for (const auto& [cell, version] : writes_.Verified()) {
    if (const Version* known = reads_.Find(*cell); known != nullptr) {
      *version = known->commit_ts;
    } else {
      missing.push_back({*cell, true});
      versions_of_missing.push_back(version);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<Version>> versions,
                              GetCells(engine_->env, start_ts_, missing, CallDeadline()));
  for (size_t i = 0; i < missing.size(); ++i) *versions_of_missing[i] = versions[i]->commit_ts;
  return absl::OkStatus();
}

absl::StatusOr<Writes> TransactionCore::BuildWrites() {
  PERCOLATOR_RETURN_IF_ERROR(FindVerified());
  const Duration age = engine_->env.runtime->Elapsed() - started_;
  const Timestamp now(start_ts_.value() + static_cast<uint64_t>(age.count()));
  return writes_.Build(engine_->env, start_ts_, now);
}

// --- Committing

CommitResult TransactionCore::Commit() {
  if (!result_.has_value()) result_ = Conclude();
  return *result_;
}

CommitResult TransactionCore::Abandon() {
  if (!result_.has_value()) result_ = AbortedBy({}, start_ts_, engine_->Closed());
  return *result_;
}

CommitResult TransactionCore::Conclude() {
  Environment& env = engine_->env;
  if (!write_error_.ok()) return AbortedBy({}, start_ts_, write_error_);
  if (writes_.empty()) {
    return CommittedAt({}, start_ts_, Timestamp());  // H24: nothing to lock, nothing to decide
  }
  if (env.options.for_repair) {
    return AbortedBy({}, start_ts_, absl::FailedPreconditionError("cannot commit: the cluster was opened for repair"));
  }
  if (absl::Status s = EnsureStarted(); !s.ok()) return AbortedBy({}, start_ts_, s);
  const uint64_t observed = env.observed.version();
  const absl::StatusOr<Writes> writes = BuildWrites();
  if (!writes.ok()) return Count(AbortedBy({}, start_ts_, writes.status()));
  CommitResult result = RunAndSendHints(*writes);
  if (result.committed() && env.observed.version() != observed) {
    PublishLateMarks(env, *writes, writes_.notified(), result.commit_ts, CallDeadline());
  }
  return Count(std::move(result));
}

// Counts the marks as under way, for Worker::WaitUntilIdle, before the commit. Sends hints to the workers after it.
CommitResult TransactionCore::RunAndSendHints(const Writes& writes) {
  for (const RowWrites& row : writes.rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.observed) triggered_.emplace(row.table, cell.column);
    }
  }
  for (const CellName& cell : writes.notified) triggered_.emplace(cell.table, cell.column);
  if (triggered_.empty()) return RunProtocol(writes);
  Environment& env = engine_->env;
  env.marks_begun.fetch_add(1);
  CommitResult result = RunProtocol(writes);
  env.marks_ended.fetch_add(1);
  if (result.committed()) SendHints(env, writes);
  return result;
}

// Chooses the protocol. Marks need no locks. Rows are committed in one step if the store supports it, otherwise in two
// phases.
CommitResult TransactionCore::RunProtocol(const Writes& writes) {
  Environment& env = engine_->env;
  if (writes.rows.empty()) return PublishMarksOnly(env, writes, CallDeadline());
  if (!env.options.one_step_commit || !env.store->CanMutateTogether()) {
    CommitResult result = CommitInTwoPhases(env, &*engine_->keeper, &*engine_->secondaries, writes, CallDeadline());
    marks_removed_ = result.committed() && RemovesWithPrimary(writes);
    return result;
  }
  if (absl::Status s = CheckAge(env, start_ts_, env.runtime->Elapsed() - started_); !s.ok()) {
    return AbortedBy(writes.primary(), start_ts_, std::move(s));
  }
  CommitResult result = CommitInOneStep(env, writes, CallDeadline());
  marks_removed_ = result.committed() && writes.removal.has_value();
  return result;
}

CommitResult TransactionCore::Count(CommitResult result) {
  Counters& counters = engine_->env.counters;
  Counters::Add(&counters.commits, result.committed() ? 1 : 0);
  Counters::Add(&counters.conflicts, IsConflict(result.status) ? 1 : 0);
  Counters::Add(&counters.unknown_outcomes, result.outcome == CommitResult::Outcome::kUnknown ? 1 : 0);
  return result;
}

}  // namespace percolator::internal
