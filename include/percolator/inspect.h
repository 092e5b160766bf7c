// SPDX-License-Identifier: Apache-2.0

// Inspection of a cluster, for its operators and for tools such as the command line `percolator`.
//
// The store holds a column `c` of a row in several families (figure 4 of the paper): long values in
// data, locks of running transactions in lock, committed versions in write, and pending
// notifications in notify. DescribeCell and DescribeColumn render such raw cells as text. An
// Inspector reads them from a cluster and lists locks, notifications and damaged cells:
//
//     Inspector inspector(cluster);
//     PERCOLATOR_ASSIGN_OR_RETURN(std::vector<LockInfo> locks, inspector.ListLocks());

#ifndef PERCOLATOR_INSPECT_H_
#define PERCOLATOR_INSPECT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "percolator/raw_cell.h"
#include "percolator/timestamp.h"
#include "percolator/types.h"

namespace percolator {

class Cluster;
namespace internal {
class Engine;
}

// Returns what a cell means, in one short line without its timestamp, for example
//
//     lock    "primary, put $3"                      this cell is the primary of its transaction
//     lock    "primary at accounts/Bob/bal, put $9"
//     write   "put $10, started 5"                   a short value, stored in the record itself
//     write   "put, started 5"                       the value is in family data, at 5
//     data    "$10"
//     notify  "changed"                              or "changed, 3 observers down the chain"
//
// Escapes bytes that are not printable and cuts long values. Says so if the bytes are not a valid
// record.
std::string DescribeCell(const Cell& cell);

// Returns the name of a store column: escaped if it is a user's, described in brackets if it is one
// of Percolator's own:
//
//     bal
//     [bal seen by audit]      the acknowledgement of the observer audit
//     [bal pending]            family notify: a change that is not committed yet
//     [rolled back]            family write: transactions that were rolled back in this row
std::string DescribeColumn(std::string_view column);

struct TableDescription {
  std::string name = {};
  TableSchema schema = {};
};

// A lock, and what a transaction that finds it will do with it.
struct LockInfo {
  enum class State : uint8_t {
    kAlive,       // its transaction is running: readers wait, writers abort
    kAbandoned,   // its owner died before the commit: it will be rolled back
    kCommitted,   // its transaction has committed: it will be rolled forward
    kRolledBack,  // its transaction was rolled back: it will be removed
  };
  CellName cell = {};
  Timestamp start_ts = {};  // of the transaction; all its locks have the same
  CellName primary = {};    // equal to `cell` if this lock is the primary
  SessionId session = 0;
  State state = State::kAlive;
  Duration age{0};  // since the transaction started
};

// A cell that has changed and that some of its observers have not processed yet.
struct WaitingNotification {
  CellName cell = {};
  // The newest change; if pending, the start of the transaction that makes it.
  Timestamp since = {};
  bool pending = false;  // the transaction has not committed yet, or its process died
  Duration age{0};
};

// A cell of the store that cannot be used or that Percolator cannot have written: it is damaged, or
// another program wrote it. The column is the store's, which may be one of Percolator's own
// (DescribeColumn).
struct BadCell {
  enum class Kind : uint8_t {
    kDamaged,      // its bytes are not a lock, a write record, a mark or an acknowledgement
    kNewerFormat,  // its bytes may be one of these, written by a newer version of Percolator
    kMissingData,  // a lock or write record whose value should be in family data but is not
    kMisplaced,    // in a reserved column that Percolator does not use in this family
    kImpossible,   // committed before its start, or a lock with an invalid primary
    kFuture,       // later than the oracle's time: the cell is wrong, or the oracle was set back
    kAbandoned,    // not a problem: a lock of a dead owner whose primary was never locked
  };
  Kind kind = Kind::kDamaged;
  CellName cell = {};
  Family family = Family::kData;
  Timestamp timestamp = {};
  std::string value = {};
  std::string why = {};
};
// Returns "damaged", "newer-format", "missing-data", "misplaced", "impossible", "future" or
// "abandoned".
std::string_view BadCellKindName(BadCell::Kind kind);

struct CheckCounts {
  uint64_t rows = 0;
  uint64_t cells = 0;     // versions, in all families
  uint64_t problems = 0;  // bad cells, except kAbandoned
  uint64_t notes = 0;     // kAbandoned
};

// Reads what transactions do not show. Runs no observers. Copies are cheap. Thread-safe.
//
// A list covers one table, or all tables if `table` is empty. It is in the order of tables, rows
// and columns, and ends after `limit` entries. A list is read page by page; a concurrent change may
// or may not be in it. All calls with a table return NotFound if it does not exist.
class Inspector {
 public:
  explicit Inspector(const Cluster& cluster);
  Inspector(const Inspector&) = default;  // a move copies
  Inspector& operator=(const Inspector&) = default;

  absl::StatusOr<std::vector<TableDescription>> ListTables() const;
  absl::StatusOr<std::vector<ObserverInfo>> ListObservers() const;

  // Returns all versions of all cells of a row, in all families, in one consistent view: by column,
  // then by family, newest first. Returns an empty list if the row does not exist.
  absl::StatusOr<std::vector<Cell>> ReadCells(std::string_view table, std::string_view row) const;

  static constexpr size_t kAll = static_cast<size_t>(-1);
  absl::StatusOr<std::vector<LockInfo>> ListLocks(std::string_view table = {},
                                                  size_t limit = kAll) const;
  // Rolls all locks forward or back, except those whose owner is alive.
  struct ResolvedLocks {
    size_t rolled_forward = 0;
    size_t rolled_back = 0;
    size_t alive = 0;  // unchanged
  };
  absl::StatusOr<ResolvedLocks> ResolveLocks(std::string_view table = {}) const;

  // Cluster::CountNotifications counts them.
  absl::StatusOr<std::vector<WaitingNotification>> ListNotifications(std::string_view table = {},
                                                                     size_t limit = kAll) const;

  // Reads all cells of all families. Calls `found` for each bad cell and, unless it is null,
  // `progress` after each page. Changes nothing. Skips tables that only Bigtable clients use.
  absl::StatusOr<CheckCounts> Check(
      std::string_view table, const std::function<void(const BadCell&)>& found,
      const std::function<void(const CheckCounts&)>& progress = nullptr) const;
  // Erases exactly this version of this cell. Its contents are lost: if it was a write record, an
  // older version becomes visible; if it was the primary's lock, its transaction counts as rolled
  // back. Returns false, and erases nothing, if the cell is gone or its bytes differ.
  absl::StatusOr<bool> EraseBadCell(const BadCell& bad) const;

  // Like those of Worker, for programs that run no observers.
  absl::StatusOr<std::vector<Quarantined>> ListQuarantine() const;
  absl::Status Replay(const Quarantined& entry) const;
  absl::Status Drop(const Quarantined& entry) const;

  // Returns the safe point of garbage collection: older versions were collected, except the newest
  // of each cell, and no older snapshot can be opened.
  absl::StatusOr<Timestamp> SafePoint() const;

 private:
  std::shared_ptr<internal::Engine> engine_;  // never null
};

}  // namespace percolator

#endif  // PERCOLATOR_INSPECT_H_
