// SPDX-License-Identifier: Apache-2.0

// Store: the data model of Bigtable, reduced to what Percolator needs.
//
// A store holds tables, a table holds rows, and a row holds cells. A cell is named by family and
// column and holds any number of versions, each a value at a timestamp:
//
//     table -> row -> family:column -> timestamp -> value
//
// All guarantees of Percolator rest on two promises of a store. Row atomicity: a RowMutation is
// evaluated and applied in one step, and a row is read in one consistent view. The safe point: no
// lock is set at or below it. A store that holds all rows and is close to the oracle can offer
// faster operations (MutateThenDraw, MutateTogether).
//
// Read and Mutate take batches, because a request to a remote store costs far more than an
// operation in it.
//
// ORDER     Rows are ordered by their key and columns by their name, both as unsigned bytes
//           (memcmp; a prefix comes first). Versions of a cell are ordered newest first.
// RANGES    Include their start and exclude their end: rows [start, limit), timestamps [from,
//           until).
// VALUES    Any bytes. A cell with an empty value exists.
// KEYS      Row keys and columns are any bytes, including 0x00 and 0xFF. A row key has at least one
//           byte. A column may be empty.
// TABLES    Names match [A-Za-z0-9_-]{1,64}. An operation on a table that does not exist returns
//           NotFound.
// LIMITS    StoreLimits in percolator/options.h. A request that exceeds one returns
//           InvalidArgument, and nothing of that row is applied. Exceeding max_tables,
//           max_total_schema_bytes or max_row_read_bytes returns ResourceExhausted instead. The
//           borders of a row range may be one byte longer than a row key.
// THREADS   Thread-safe.
//
// ERRORS    The last column says whether a mutation that returned the error was certainly not
//           applied (CertainlyNotApplied). Otherwise it may have been applied, or may be applied
//           later; read to find out.
//
//           kNotFound            the table does not exist                               not applied
//           kAlreadyExists       CreateTable of a table that exists                     not applied
//           kInvalidArgument     an exceeded limit or a malformed request               not applied
//           kFailedPrecondition  the store is closed; it was opened by a process that   not applied
//                                forked this one; or it accepts no more writes because
//                                of an earlier I/O error, which the text names, and
//                                reads still work if possible
//           kOutOfRange          a lock at or below the safe point                      not applied
//           kUnimplemented       the store, or the server of a remote store, lacks the  not applied
//                                operation
//           kResourceExhausted   the disk is full or nearly full                        unknown
//                                (RocksOptions::reserve_bytes), or a limit was
//                                exceeded: see LIMITS
//           kDataLoss            stored bytes are corrupt, or this operation had an     unknown
//                                I/O error
//           kUnavailable, kDeadlineExceeded
//                                a remote store could not be reached in time            unknown
//           any other code       unexpected                                             unknown

#ifndef PERCOLATOR_SPI_STORE_H_
#define PERCOLATOR_SPI_STORE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/raw_cell.h"
#include "percolator/spi/timestamp_range.h"
#include "percolator/timestamp.h"
#include "percolator/types.h"

namespace percolator {

class Oracle;

struct Row {
  std::string key;
  std::vector<Cell> cells;

  friend bool operator==(const Row&, const Row&) = default;
};

// Which versions of a row to return.
struct Selector {
  static constexpr uint32_t kAllVersions = 0;

  Family family = Family::kData;
  // The column with exactly this name. Without a name: every column of the family.
  std::optional<std::string> column;
  TimestampRange range;
  // Maximum number of versions per column: the newest ones in `range`.
  uint32_t newest = kAllVersions;
};

// A read of one row. All selectors see the same consistent view.
struct RowRead {
  std::string table;
  std::string row;
  std::vector<Selector> selectors;
  // Columns and values that exceed this in total return ResourceExhausted before they are gathered.
  // Stores in other processes ignore it.
  size_t max_bytes = std::numeric_limits<size_t>::max();
};

struct ScanRequest {
  std::string table;
  RowRange rows;
  std::vector<Selector> selectors;
  // Maximum number of rows in a page. Rows in which no selector selects anything are skipped and do
  // not count.
  size_t row_limit = 1000;
  // Return rows in descending order of their keys, from the end of the range. The order of the
  // cells in a row is unaffected.
  bool reverse = false;
  // As in RowRead, for each row. A page ends before a row that exceeds it, unless it is the first.
  size_t max_row_bytes = std::numeric_limits<size_t>::max();

  // Makes this the request for the next page, given ScanPage::resume of the one before.
  void ContinueAt(std::string resume);
};

struct ScanPage {
  std::vector<Row> rows;
  // Where the next page begins: pass it to ScanRequest::ContinueAt and scan again. Absent at the
  // end of the range. A store ends a page at row_limit, at StoreLimits::max_scan_bytes, or after a
  // bounded amount of work. So a page may be short, or even empty, without being the last.
  std::optional<std::string> resume;
};

// The versions of one cell in a range of timestamps.
struct CellRange {
  Family family = Family::kData;
  std::string column;
  TimestampRange range;
};

// Tests which of `cells` exist. A cell exists if it has a version in its range. A condition without
// cells always holds.
struct Condition {
  enum class Quantifier : uint8_t {
    kNone,  // none of the cells exists (prewrite: no lock, no newer write)
    kAny,   // at least one of them exists
    kAll,   // every one of them exists (commit: my locks are still there)
  };
  Quantifier quantifier = Quantifier::kNone;
  std::vector<CellRange> cells;
};

// One effect on a row.
struct Mutation {
  enum class Kind : uint8_t { kSet, kErase };

  // Writes one version. Replaces an existing one at that timestamp.
  static Mutation Set(Family family, std::string column, Timestamp ts, std::string value);
  // Removes every version in the range, if there are any.
  static Mutation Erase(Family family, std::string column, TimestampRange range);

  Kind kind = Kind::kSet;
  Family family = Family::kData;
  std::string column;
  // kSet: range is exactly the timestamp of the new version.
  TimestampRange range;
  std::string value;
};

// Applies `mutations` in their order if `condition` holds for the row, in one atomic step.
struct RowMutation {
  std::string table;
  std::string row;
  Condition condition;
  std::vector<Mutation> mutations;
};

enum class MutateResult : uint8_t {
  kApplied,          // the condition held; every mutation is applied and durable
  kConditionFailed,  // the condition did not hold; nothing is changed
};

// The result of a mutation, and a timestamp: Store::MutateThenDraw.
struct DrawnResult {
  absl::StatusOr<MutateResult> result;
  // A new timestamp, drawn after the mutation was applied. Absent if it was not applied or if the
  // store draws none.
  std::optional<Timestamp> drawn;
};

// Changes of all rows of a transaction in one step: Store::MutateTogether.
struct JointMutation {
  // The start of the transaction. Must be above the safe point.
  Timestamp start_ts;
  // Each row at most once. A mutation that sets a cell at AtCommit() sets it at the timestamp that
  // is drawn.
  std::vector<RowMutation> rows;

  static constexpr Timestamp AtCommit() { return Timestamp::Infinity(); }
};

struct JointResult {
  bool applied = false;
  Timestamp timestamp;    // if applied: the one that was drawn
  size_t failed_row = 0;  // if not applied: a row whose condition does not hold
};

// A table's name and its schema: bytes that the store keeps and does not interpret.
struct TableInfo {
  std::string name;
  std::string schema;

  friend bool operator==(const TableInfo&, const TableInfo&) = default;
};

// Returns whether a mutation that returned this error was certainly not applied: see ERRORS.
bool CertainlyNotApplied(const absl::Status& status);

class Store {
 public:
  virtual ~Store() = default;

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Returns one Row for each RowRead, in the same order. The cells of a row are in the order of the
  // selectors that selected them, and for one selector by column, then newest first; a cell that
  // two selectors select appears twice. Each row is read in one consistent view. Different entries
  // may be read at different moments, even if they name the same row. A mutation that was
  // acknowledged before the call is always visible.
  virtual absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) = 0;

  // Returns a page of rows in the order of their keys. Each row is one consistent view, with its
  // cells as in Read. A reverse scan may return Unimplemented.
  virtual absl::StatusOr<ScanPage> Scan(const ScanRequest& request) = 0;

  // Applies conditional row mutations. Returns one result for each, in the same order. The
  // mutations are independent: one may be applied and the next one fail, and a crash may leave any
  // subset applied, but never a part of a row mutation. Mutations of the same row are evaluated in
  // their order.
  virtual std::vector<absl::StatusOr<MutateResult>> Mutate(
      const std::vector<RowMutation>& mutations) = 0;

  // Like Mutate. A store that holds the cluster's oracle also returns a new timestamp for each
  // applied mutation, which saves a request. The largest timestamp of a call was drawn after all
  // its mutations were applied.
  virtual std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations);

  // Returns whether MutateTogether is supported: the store holds all rows in one place, and its
  // caller's oracle is close.
  virtual bool CanMutateTogether() const { return false; }

  // If the conditions of all rows hold, draws a timestamp from the oracle and applies all
  // mutations, in one atomic step and one durable write. No reader can miss it: from before the
  // draw until all is applied the rows are closed, so every Read of one of them and every Scan
  // waits. A Read that begins after a later timestamp was drawn therefore sees the mutation. After
  // an error that leaves the outcome unknown, the rows stay closed: reading them returns
  // FailedPrecondition until the store is opened again, because the mutation may then be visible.
  virtual absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle);

  // Raises the safe point of garbage collection. After this returns, no mutation sets a lock at or
  // below it, and no MutateTogether that started there is applied: they return OutOfRange. A
  // smaller timestamp has no effect. The safe point is durable.
  virtual absl::Status RaiseSafePoint(Timestamp ts) = 0;
  virtual absl::StatusOr<Timestamp> SafePoint() = 0;
  // Returns a safe point at least as recent as the last Read or Scan of this caller. It tells
  // whether garbage collection may have removed what was read. A remote store knows it without a
  // request.
  virtual absl::StatusOr<Timestamp> SafePointOfReads() { return SafePoint(); }

  // Returns row keys that divide the table into pieces of about equal size: ascending, distinct,
  // possibly none. For choosing random places to scan; an estimate.
  virtual absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) = 0;

  virtual absl::Status CreateTable(const TableInfo& info) = 0;
  // Drops the table with all its rows. Concurrent operations on it finish before that or return
  // NotFound.
  virtual absl::Status DropTable(const std::string& name) = 0;
  // Returns all tables, ordered by name.
  virtual absl::StatusOr<std::vector<TableInfo>> ListTables() = 0;
  // Returns one table, or NotFound.
  virtual absl::StatusOr<TableInfo> GetTable(const std::string& name);

  // Waits for background work, makes everything acknowledged durable, and releases all resources.
  // Later calls return FailedPrecondition; closing twice is not an error. The destructor closes
  // too, but cannot report an error. REQUIRES: no other call is running.
  virtual absl::Status Close() = 0;

 protected:
  Store() = default;
};

// Opens the store in directory `dir`. Creates it if it is missing or empty. Returns
// FailedPrecondition if another process has the directory open, if it holds something else, or if
// its format is newer. In a child of fork() every call of the store fails with FailedPrecondition,
// and destroying it there does nothing.
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& dir,
                                                      const RocksOptions& options = {});

// Returns a store in memory, for tests and simulation.
std::unique_ptr<Store> NewMemoryStore(const StoreLimits& limits = {});

}  // namespace percolator

#endif  // PERCOLATOR_SPI_STORE_H_
