// Looking into a cluster: for people who operate one, and for tools such as the command line `percolator`.
//
// A column `c` of a row is several columns of the store below it (figure 4 of the paper): c in family data holds long
// values, in family lock the locks of transactions under way, in family write the committed versions, in family notify
// the marks of changes that observers have to see. DescribeCell and DescribeColumn put such raw cells into words; an
// Inspector reads them from a cluster, and lists what waits in it:
//
//     Inspector inspector(cluster.get());
//     auto locks = inspector.ListLocks();
//     if (!locks.ok()) ...
//     for (const LockInfo& lock : *locks) ...

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
#include "percolator/coordinator.h"
#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/store.h"
#include "percolator/timestamp.h"

namespace percolator {

class Cluster;
namespace internal {
class Engine;
}

// What a cell means, in one short line without its timestamp, for example
//
//     lock    "primary, put $3"                      this cell is the primary of its transaction
//     lock    "primary at accounts/Bob/bal, put $9"
//     write   "put $10, started 5"                   a short value, kept in the record itself
//     write   "put, started 5"                       the value is in the family data, at 5
//     data    "$10"
//     notify  "changed"                              or "changed, 3 observers down the chain"
//
// Values that are no printable text are escaped, long ones cut. Bytes that are no record are said to be so.
std::string DescribeCell(const Cell& cell);

// The name of a column of the store: escaped if it is a user's, in words in brackets if it is Percolator's own:
//
//     bal
//     [bal seen by audit]      the acknowledgement of the observer audit
//     [bal pending]            family notify: a change that is not committed yet
//     [rolled back]            family write: transactions that were rolled back in this row
std::string DescribeColumn(std::string_view column);

struct TableDescription {
  std::string name;
  TableSchema schema;
};

// A lock, and what will become of it when somebody meets it.
struct LockInfo {
  enum class State : uint8_t {
    kAlive,       // its transaction is running: readers wait, writers give up
    kAbandoned,   // its owner is gone before it committed: it will be rolled back
    kCommitted,   // its transaction has committed: it will be rolled forward
    kRolledBack,  // its transaction was rolled back elsewhere: so will it be
  };
  CellName cell;
  Timestamp start_ts;  // of the transaction: all its locks have the same
  CellName primary;    // equal to `cell`: this is it
  SessionId session = 0;
  State state = State::kAlive;
  Duration age{0};  // since the transaction started
};

// A cell that has changed and whose observers have not all seen it.
struct WaitingNotification {
  CellName cell;
  Timestamp since;       // the newest change; pending: the start of the transaction that makes it
  bool pending = false;  // that transaction is under way, or died
  Duration age{0};
};

// A cell of the store that can't be used, or could not have been written by Percolator: damage, or the work of another
// program. The column is the store's: it may be one of Percolator's own (DescribeColumn).
struct BadCell {
  enum class Kind : uint8_t {
    kDamaged,      // its bytes are no lock, write record, mark or acknowledgement
    kNewerFormat,  // they may be one, of a newer Percolator
    kMissingData,  // a lock or record of a long value, which is not in the family data
    kMisplaced,    // in a reserved column that Percolator does not have in this family
    kImpossible,   // committed before its start, or a lock whose primary can't be one
    kFuture,       // later than the oracle's time: the cell is wrong, or the oracle has lost its time
    kAbandoned,    // no problem, a note: a lock whose primary was never locked and whose owner is gone
  };
  Kind kind = Kind::kDamaged;
  CellName cell;
  Family family = Family::kData;
  Timestamp timestamp;
  std::string value;
  std::string why;
};
// "damaged", "newer-format", "missing-data", "misplaced", "impossible", "future" or "abandoned".
std::string_view BadCellKindName(BadCell::Kind kind);

struct CheckCounts {
  uint64_t rows = 0;
  uint64_t cells = 0;     // versions, in all families
  uint64_t problems = 0;  // bad cells but for kAbandoned
  uint64_t notes = 0;     // kAbandoned
};

// Reads what transactions do not show. Nothing here runs an observer. Copies are cheap. Thread-safe.
//
// Lists are of one table, or of all if `table` is empty, in the order of tables, rows and columns, and end after `most`
// entries. They are read page by page while others write: what changes meanwhile is in them or not.
// kNotFound: there is no such table.
class Inspector {
 public:
  explicit Inspector(Cluster* cluster);

  absl::StatusOr<std::vector<TableDescription>> ListTables();
  absl::StatusOr<std::vector<ObserverInfo>> ListObservers();

  // All versions of all cells of a row, in all families, in one consistent view: by column, then family, newest first.
  // None: there is no such row.
  absl::StatusOr<std::vector<Cell>> ReadCells(std::string_view table, std::string_view row);

  static constexpr size_t kAll = static_cast<size_t>(-1);
  absl::StatusOr<std::vector<LockInfo>> ListLocks(std::string_view table = {}, size_t most = kAll);
  // Rolls forward or back all locks but those whose owners are alive, as whoever meets them would.
  struct ResolvedLocks {
    size_t rolled_forward = 0;
    size_t rolled_back = 0;
    size_t alive = 0;  // left alone
  };
  absl::StatusOr<ResolvedLocks> ResolveLocks(std::string_view table = {});

  // Cluster::NotificationBacklog counts them.
  absl::StatusOr<std::vector<WaitingNotification>> ListNotifications(std::string_view table = {}, size_t most = kAll);

  // Reads all cells of all families, and calls `found` for each bad one and `progress`, unless it is null, after each page.
  // Changes nothing. Tables that only clients of Bigtable use are not looked at.
  absl::StatusOr<CheckCounts> Check(std::string_view table, const std::function<void(const BadCell&)>& found,
                                    const std::function<void(const CheckCounts&)>& progress = nullptr);
  // Erases exactly this version of this cell. What it said is lost: an older version becomes visible if it was a write
  // record, and its transaction counts as rolled back if it was the lock of its primary. Returns false, and erases
  // nothing, if the cell has other bytes now or is gone.
  absl::StatusOr<bool> EraseBadCell(const BadCell& bad);

  // As Worker's, for programs that run no observers.
  absl::StatusOr<std::vector<Quarantined>> ListQuarantine();
  absl::Status Replay(const Quarantined& entry);
  absl::Status Drop(const Quarantined& entry);

  // Everything older is collected, but the newest version of each cell: there is no snapshot before it.
  absl::StatusOr<Timestamp> SafePoint();

 private:
  std::shared_ptr<internal::Engine> engine_;  // never null
};

}  // namespace percolator

#endif  // PERCOLATOR_INSPECT_H_
