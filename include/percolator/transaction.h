// Snapshots and transactions.
//
// A transaction reads from the snapshot at its start timestamp and writes at a later commit timestamp. If two
// transactions that overlap in time write the same cell, at most one commits. That is snapshot isolation: reads never
// block writes or each other, and never see half a transaction. It is not serializability: two transactions may each
// read what the other writes (write skew), unless one of them says Verify on what it read.
//
// Three types, each allowed to do more:
//
//     ReadView      reads                              a Snapshot is one
//     ReadWrite     + Set, Delete, Verify, Notify      what observers and Transact functions get: they can't commit
//     Transaction   + Commit                           for those who run transactions by hand
//
// Writes are kept in memory until Commit.
//
// LIFETIME  Snapshots, transactions and scans keep what they need of the cluster. They may be destroyed in any order, before or
//           after the cluster is closed; afterwards every call on them returns kFailedPrecondition.

#ifndef PERCOLATOR_TRANSACTION_H_
#define PERCOLATOR_TRANSACTION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator {

class Cluster;
namespace internal {
class Engine;
class TransactionCore;
}  // namespace internal

// What a scan yields: a row and its columns with their values, in the order of their names.
struct ScannedRow {
  std::string key;
  struct Column {
    std::string name;
    std::string value;
  };
  std::vector<Column> columns;
};

// A stream of rows, in key order:
//
//     auto rows = view.Scan({.table = "documents"});
//     while (rows->Next()) Use(rows->row());
//     if (!rows->status().ok()) ...
class RowIterator {
 public:
  virtual ~RowIterator() = default;

  // Moves to the next row. False: there is none, or an error; status() tells which.
  virtual bool Next() = 0;
  // REQUIRES: the last Next returned true.
  virtual const ScannedRow& row() const = 0;
  virtual const absl::Status& status() const = 0;
};

class ReadView {
 public:
  virtual ~ReadView();

  // The value of a cell in this view; absent if it has none.
  absl::StatusOr<std::optional<std::string>> Get(std::string_view table, std::string_view row, std::string_view column);

  // Many cells in as few requests as possible; the answer has one entry for each, in the same order.
  absl::StatusOr<std::vector<std::optional<std::string>>> Get(const std::vector<CellName>& cells);

  // Rows of a range. The iterator may outlive this view. Used by one thread at a time.
  std::unique_ptr<RowIterator> Scan(const ScanOptions& options);

  // Everything committed at or before this timestamp is visible, and nothing else. Zero: the transaction has not started.
  Timestamp timestamp() const;

  // Implementation detail.
  internal::TransactionCore& core() const { return *core_; }

 protected:
  explicit ReadView(std::shared_ptr<internal::TransactionCore> core);
  ReadView(const ReadView&) = default;  // a move copies: there is no view that was moved from
  ReadView& operator=(const ReadView&) = default;

 private:
  std::shared_ptr<internal::TransactionCore> core_;  // never null
};

// A read-only view. Takes no locks and needs no commit. While one of its copies exists, garbage collection keeps what it sees.
// Copies are cheap. Thread-safe, but each scan is for one thread.
class Snapshot final : public ReadView {
 public:
  // Implementation detail: Cluster makes snapshots.
  explicit Snapshot(std::shared_ptr<internal::TransactionCore> core);
};

// Reads see the writes made before in the same transaction, also in scans. Used by one thread at a time.
class ReadWrite : public ReadView {
 public:
  ReadWrite(const ReadWrite&) = delete;
  ReadWrite& operator=(const ReadWrite&) = delete;

  // Draws the start timestamp, unless that was done before, and returns it. No other transaction has the same, so it is also a
  // name for what this one writes.
  absl::StatusOr<Timestamp> Start();

  // Errors are of the call itself: a limit, an unknown table, a reserved or notify-only column. Conflicts show at commit.
  absl::Status Set(std::string_view table, std::string_view row, std::string_view column, std::string_view value);
  absl::Status Delete(std::string_view table, std::string_view row, std::string_view column);

  // Fails the commit if anyone else writes the cell between this transaction's start and commit, so that what was read still
  // holds at the commit timestamp.
  absl::Status Verify(std::string_view table, std::string_view row, std::string_view column);

  // Notifies the observers of a notify-only column (TableSchema), if the transaction commits. Never conflicts.
  absl::Status Notify(std::string_view table, std::string_view row, std::string_view column);

 protected:
  using ReadView::ReadView;
};

// What became of a commit. There are three answers, and a caller must not take one for another.
struct [[nodiscard]] CommitResult {
  enum class Outcome : uint8_t {
    kCommitted,  // durable, and seen by every transaction that starts from now on
    kAborted,    // never seen by anyone, now or later
    kUnknown,    // one of the two: the primary's row could not be reached (Cluster::Resolve tells which later), or the
                 // client was paused for longer than the retention and garbage collection has taken the answer
  };
  Outcome outcome = Outcome::kUnknown;
  Timestamp start_ts;
  Timestamp commit_ts;  // kCommitted: when. Zero if nothing was written
  CellName primary;     // where the answer is kept, for Resolve
  absl::Status status;  // OK, or why not: see percolator/status.h

  bool committed() const { return outcome == Outcome::kCommitted; }
};

// The commit of unknown outcome that a status tells of, such as Cluster::Transact returns: for Cluster::Resolve. Absent: it
// tells of none.
std::optional<CommitResult> UnknownCommitOf(const absl::Status& status);

class Transaction final : public ReadWrite {
 public:
  // Starts a transaction: draws its start timestamp at the first read or at Commit. If Commit is not called, the
  // transaction has no effect.
  explicit Transaction(Cluster* cluster, const TransactionOptions& options = {});
  explicit Transaction(std::shared_ptr<internal::Engine> engine, const TransactionOptions& options = {});

  // Returns at the commit point: the transaction is then durable and will be seen whole. Afterwards nothing can be read or
  // written in it any more; calling it again gives the same answer.
  CommitResult Commit();
};

}  // namespace percolator

#endif  // PERCOLATOR_TRANSACTION_H_
