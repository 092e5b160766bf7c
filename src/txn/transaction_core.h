// SPDX-License-Identifier: Apache-2.0

// TransactionCore: the core of snapshots and transactions. It combines the steps in get.h, scan.h, two_phase.h,
// one_step.h and publish_marks.h, which have the rules.

#ifndef PERCOLATOR_TXN_TRANSACTION_CORE_H_
#define PERCOLATOR_TXN_TRANSACTION_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "percolator/transaction.h"
#include "src/txn/engine.h"
#include "src/txn/read_cache.h"
#include "src/txn/row_view.h"
#include "src/txn/write_buffer.h"
#include "src/txn/writes.h"

namespace percolator {

namespace internal {

// Used by one thread at a time, except a snapshot's Get, which is thread-safe.
class TransactionCore {
 public:
  // The transaction of a handle, which keeps the engine. Its start timestamp is drawn when it is first needed.
  TransactionCore(std::shared_ptr<Engine> engine, const TransactionOptions& options);
  // The same for Percolator's own use: the engine must outlive it.
  TransactionCore(Engine* engine, const TransactionOptions& options);
  // A snapshot.
  TransactionCore(std::shared_ptr<Engine> engine, Timestamp ts);
  ~TransactionCore();

  TransactionCore(const TransactionCore&) = delete;
  TransactionCore& operator=(const TransactionCore&) = delete;

  absl::StatusOr<std::vector<std::optional<std::string>>> Get(absl::Span<const CellName> cells);
  absl::StatusOr<std::optional<std::string>> Get(std::string_view table, std::string_view row, std::string_view column);
  RowScan Scan(std::string_view table, ScanOptions options);

  // Set, Delete or Verify.
  absl::Status Buffer(WriteKind kind, std::string_view table, std::string_view row, std::string_view column,
                      std::string_view value);
  // Makes a weak notification.
  absl::Status Notify(std::string_view table, std::string_view row, std::string_view column);
  // The first error of a write of the user, or OK. It fails all later reads and the commit.
  const absl::Status& write_error() const { return write_error_; }
  void KeepWriteError(absl::Status status) { write_error_ = std::move(status); }
  // The first error of a read of the user, or OK. Snapshots, which many threads use, keep none.
  const absl::Status& read_error() const { return read_error_; }
  void NoteReadError(const absl::Status& status) {
    if (!is_snapshot_ && read_error_.ok()) read_error_ = status;
  }
  CommitResult Commit();

  // --- For observers (src/observe/run.h).

  // Returns the cells as this transaction's snapshot sees them, each with its commit timestamp.
  absl::StatusOr<std::vector<Version>> GetVersions(const std::vector<CellName>& cells);
  // Whether the commit has also carried out WriteBuffer::RemoveMarks.
  bool marks_removed() const { return marks_removed_; }
  // Tables and columns that were committed and are observed.
  const std::set<std::pair<std::string, std::string>>& triggered() const { return triggered_; }

  // Set by Commit or Abandon. Commit returns this again.
  const std::optional<CommitResult>& result() const { return result_; }
  // Ends the transaction because the cluster is closed: Commit returns that, unless it has an answer.
  CommitResult Abandon();

  // Zero until it is drawn.
  Timestamp start_ts() const { return start_ts_; }
  Engine* engine() const { return engine_; }
  WriteBuffer& writes() { return writes_; }
  // The deadline of one call: the time left of the transaction, but at most the call timeout. A read also ends when the
  // cluster is closed; a commit goes on.
  Deadline CallDeadline() const;
  Deadline ReadDeadline() const { return CallDeadline().Or(&engine_->closed()); }
  // Returns OK if reads are allowed. Then the start timestamp is drawn.
  absl::Status MayRead();

 private:
  absl::Status EnsureStarted();

  absl::Status Fetch(const std::vector<CellName>& cells);
  absl::Status RetryCheck(absl::FunctionRef<absl::Status()> check);

  absl::StatusOr<Writes> BuildWrites();
  absl::Status FindVerified();
  CommitResult Conclude();
  CommitResult RunAndSendHints(const Writes& writes);
  CommitResult RunProtocol(const Writes& writes);
  CommitResult Count(CommitResult result);

  const std::shared_ptr<Engine> owner_;  // null if no handle owns the core
  Engine* const engine_;
  const bool is_snapshot_;
  std::optional<Deadline> deadline_;
  Timestamp start_ts_;
  Duration started_{};  // Runtime::Elapsed at the start
  size_t slot_ = 0;     // in the registry, once started

  WriteBuffer writes_;
  ReadCache reads_;
  absl::Status write_error_;
  absl::Status read_error_;

  bool marks_removed_ = false;
  std::set<std::pair<std::string, std::string>> triggered_;

  std::optional<CommitResult> result_;  // of Commit
};

}  // namespace internal

using internal::TransactionCore;

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TRANSACTION_CORE_H_
