// TransactionCore: what snapshots and transactions are made of. Orchestrates the steps in get.h, scan.h, prewrite.h,
// commit.h and one_step.h; the rules are there.

#ifndef PERCOLATOR_TXN_TRANSACTION_CORE_H_
#define PERCOLATOR_TXN_TRANSACTION_CORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/transaction.h"
#include "src/txn/engine.h"
#include "src/txn/get.h"
#include "src/txn/writes.h"

namespace percolator {

// A write that waits for the commit.
struct BufferedWrite {
  WriteKind kind = WriteKind::kPut;
  std::string value;
};
using WriteBuffer = std::map<CellName, BufferedWrite>;

class TransactionCore {
 public:
  // A transaction; its start timestamp is drawn when it is needed first. A null engine: of a cluster that is closed.
  TransactionCore(Engine* engine, const TransactionOptions& options);
  // A snapshot.
  TransactionCore(Engine* engine, Timestamp ts);
  ~TransactionCore();

  TransactionCore(const TransactionCore&) = delete;
  TransactionCore& operator=(const TransactionCore&) = delete;

  absl::StatusOr<std::vector<std::optional<std::string>>> Get(const std::vector<CellName>& cells);
  absl::StatusOr<std::optional<std::string>> Get(std::string_view table, std::string_view row, std::string_view column);
  std::unique_ptr<RowIterator> Scan(const ScanOptions& options);

  // Set, Delete or Verify.
  absl::Status Buffer(WriteKind kind, std::string_view table, std::string_view row, std::string_view column,
                      std::string_view value);
  CommitResult Commit();

  // Zero: not drawn yet.
  Timestamp start_ts() const { return start_ts_; }
  Engine* engine() const { return engine_; }
  const WriteBuffer& writes() const { return writes_; }
  // For one call: what is left of the transaction's time, at most as long as a call may take.
  Deadline CallDeadline() const;
  // OK: the start timestamp is there, and reading is allowed.
  absl::Status MayRead();

  // Only for the mutant that retries without running the user's function again.
  void TakeWrites(TransactionCore* from) { writes_ = std::move(from->writes_); }

 private:
  absl::Status EnsureStarted();
  CommitResult CommitOnce();

  // A row of which the transaction has read something: for the predictor.
  struct RowReads {
    std::string first;
    std::vector<std::string> others;
  };
  struct CachedRead {
    Version version;
    bool prefetched = false;  // and not used yet
  };

  absl::Status Fetch(const std::vector<CellName>& cells);
  void AddPredicted(const std::vector<WantedCell>& asked, std::vector<WantedCell>* wanted);
  void NoteRead(const CellName& cell);
  void Learn();

  absl::StatusOr<Writes> BuildWrites();
  absl::Status FindVerified(std::map<CellName, Timestamp>* verified);
  CommitResult CommitInTwoPhases(const Writes& writes);
  CommitResult Count(CommitResult result);

  Engine* const engine_;
  const bool is_snapshot_;
  const std::string kind_;
  std::optional<Deadline> deadline_;
  Timestamp start_ts_;
  Duration started_{};  // when, by Runtime::Elapsed
  size_t slot_ = 0;     // in the registry, once started

  WriteBuffer writes_;
  size_t buffered_bytes_ = 0;
  std::map<CellName, CachedRead> cache_;
  size_t cached_bytes_ = 0;
  std::map<std::pair<std::string, std::string>, RowReads> row_reads_;
  bool committed_ = false;  // Commit was called
  CommitResult result_;     // and what it said
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TRANSACTION_CORE_H_
