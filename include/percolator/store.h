// Store: the data model of Bigtable, reduced to what Percolator needs of it.
//
// A store holds tables; a table holds rows; a row holds cells; a cell is named by family and column and holds
// any number of versions, each a value at a timestamp:
//
//     table -> row -> family:column -> timestamp -> value
//
// The store knows nothing of transactions. Its one promise above a sorted map is row atomicity: a RowMutation
// is evaluated and applied in one step, and a row is read in one consistent view. Everything Percolator
// guarantees is built from these two.
//
// Read and Mutate take batches, because with a remote store a request costs far more than an operation in it.
//
// ORDER     Rows are ordered by their key, columns by their name, both as unsigned bytes (memcmp, a prefix
//           first). Versions of a cell come newest first.
// RANGES    Include their start and exclude their end: rows [start, limit), timestamps [from, until).
// VALUES    Any bytes. An empty value is a value: a cell with an empty value exists.
// KEYS      Row keys and columns are any bytes, also 0x00 and 0xFF. A row key has at least one byte; a column
//           may be empty.
// TABLES    Named by [A-Za-z0-9_-]{1,64}. An operation on a table that does not exist is kNotFound.
// LIMITS    StoreLimits, below; what exceeds them is kInvalidArgument, and nothing of that row is applied. The
//           borders of a row range may be one byte longer than a row key.
// THREADS   All operations may be called from any number of threads at once.
//
// ERRORS    kNotFound            no such table
//           kAlreadyExists       CreateTable of a table that exists
//           kInvalidArgument     a limit exceeded, or a malformed request
//           kFailedPrecondition  the store is closed, or takes no more writes since an earlier I/O error (the
//                                text says which, and what to do); reads go on where they can
//           kResourceExhausted   the disk is full, or nearly (RocksStoreOptions::reserve_bytes)
//           kDataLoss            stored bytes are corrupt, or an I/O error hit this very operation
//           kOutOfRange          a lock at or below the safe point
//           kUnavailable, kDeadlineExceeded
//                                a remote store could not be reached in time
//
// For a mutation, the first four, kOutOfRange, and kUnimplemented of a remote store, say that it was certainly not applied. After any other error it may have been
// applied, or may still be: the caller must read to find out.

#ifndef PERCOLATOR_STORE_H_
#define PERCOLATOR_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/timestamp.h"

namespace percolator {

class Oracle;

// The families of every table: figure 5 of the paper. Each is kept apart on disk, so that scanning one does
// not read the others. These values are part of the formats in docs/format.md: do not change them.
enum class Family : uint8_t {
  kData = 0,    // the values, at the start timestamp of the transaction that wrote them
  kLock = 1,    // locks of uncommitted transactions, at their start timestamp
  kWrite = 2,   // committed writes, at their commit timestamp
  kNotify = 3,  // marks of cells whose observers have to run
};
inline constexpr int kFamilyCount = 4;

// "data", "lock", "write" or "notify".
std::string_view FamilyName(Family family);

// One version of one cell.
struct Cell {
  Family family = Family::kData;
  std::string column;
  Timestamp timestamp;
  std::string value;

  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Row {
  std::string key;
  std::vector<Cell> cells;

  friend bool operator==(const Row&, const Row&) = default;
};

// Which versions of a row to return.
struct Selector {
  static constexpr uint32_t kAllVersions = 0;

  Family family = Family::kData;
  // The column with exactly this name; absent: every column of the family.
  std::optional<std::string> column;
  TimestampRange range;
  // Per column, at most this many of the newest versions in `range`.
  uint32_t newest = kAllVersions;
};

// Read one row. The selectors see the row in one consistent view.
struct RowRead {
  std::string table;
  std::string row;
  std::vector<Selector> selectors;
};

// The row keys k with start <= k < limit; without a limit, to the end of the table. An empty start is the
// beginning.
struct RowRange {
  std::string start;
  std::optional<std::string> limit;

  static RowRange All() { return {}; }
  static RowRange Single(std::string key);
  static RowRange Prefix(std::string_view prefix);
  // Everything after `key`, without `key`: for resuming past a row.
  static RowRange After(std::string key);
};

struct ScanRequest {
  std::string table;
  RowRange rows;
  std::vector<Selector> selectors;
  // At most this many rows in one page. Rows of which no selector selects anything are skipped and do not
  // count.
  size_t row_limit = 1000;
};

struct ScanPage {
  std::vector<Row> rows;
  // Where the next page starts: scan again with rows.start = *resume. Absent: the range is done. A store ends
  // a page at row_limit, at StoreLimits::scan_bytes, or after a bounded amount of work, so a page may be
  // short, or even empty, and still not be the last.
  std::optional<std::string> resume;
};

// One cell and the timestamps at which a version of it is looked for.
struct CellRange {
  Family family = Family::kData;
  std::string column;
  TimestampRange range;
};

// Tests which of `cells` exist; a cell exists if it has a version in its range. A condition without cells always holds.
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

  // Writes one version, replacing an existing one at that timestamp.
  static Mutation Set(Family family, std::string column, Timestamp ts, std::string value);
  // Removes every version in the range; removing what does not exist is no error.
  static Mutation Erase(Family family, std::string column, TimestampRange range);

  Kind kind = Kind::kSet;
  Family family = Family::kData;
  std::string column;
  // kSet: range is exactly the timestamp of the new version.
  TimestampRange range;
  std::string value;
};

// If `condition` holds for the row, apply `mutations` in their order; all of it in one atomic step.
struct RowMutation {
  std::string table;
  std::string row;
  Condition condition;
  std::vector<Mutation> mutations;
};

enum class MutateResult : uint8_t {
  kApplied,          // the condition held, every mutation is applied and as durable as the store promises
  kConditionFailed,  // it did not, nothing is changed
};

// What became of a mutation, and a timestamp: Store::MutateThenDraw.
struct DrawnResult {
  absl::StatusOr<MutateResult> result;
  // Drawn after the mutation was applied, and nobody else's. Absent: it was not applied, or the store draws none.
  std::optional<Timestamp> drawn;
};

// The rows of a transaction, to be changed in one step: Store::MutateTogether.
struct JointMutation {
  // The start of the transaction. At or below the safe point it is refused.
  Timestamp start_ts;
  // Each row once. A mutation that sets a cell at AtCommit() sets it at the timestamp that is drawn.
  std::vector<RowMutation> rows;

  static constexpr Timestamp AtCommit() { return Timestamp::Infinity(); }
};

struct JointResult {
  bool applied = false;
  Timestamp timestamp;    // applied: the one that was drawn
  size_t failed_row = 0;  // not applied: a row whose condition does not hold
};

// A table's name and its schema: bytes that the store keeps and does not interpret.
struct TableInfo {
  std::string name;
  std::string schema;

  friend bool operator==(const TableInfo&, const TableInfo&) = default;
};

struct StoreLimits {
  size_t row_key_bytes = 4 << 10;  // Bigtable's own limit
  size_t column_bytes = 16 << 10;  // Bigtable's own limit
  size_t value_bytes = 16 << 20;
  size_t row_selectors = 100'000;        // selectors of one RowRead, or of a scan
  size_t row_mutations = 100'000;        // mutations and condition cells in one RowMutation, each
  size_t row_mutation_bytes = 64 << 20;  // of one RowMutation: row key, columns and values
  size_t row_read_bytes =
      64 << 20;                    // of cells of one row that more than few_selectors select: they may select the same
  size_t few_selectors = 4;        // as many as there are families
  size_t schema_bytes = 64 << 10;  // of one table
  size_t tables = 1'000;           // of a store that is made from now on; those that exist stay
  size_t scan_bytes = 4 << 20;     // a page ends at the first row that reaches this
  size_t scan_work = 100'000;      // versions looked at in one page before it ends
};

class Store {
 public:
  virtual ~Store() = default;

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Reads rows; the answer has one Row for each RowRead, in the same order. A row's cells come in the order
  // of the selectors that selected them, and within one selector by column, then newest first; a cell that
  // two selectors select comes twice. Each row is read in one consistent view; different rows may be read at
  // different moments, even if the same row is asked for twice. A mutation acknowledged before the call is
  // always seen.
  virtual absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) = 0;

  // Reads a page of rows in key order. Each row is one consistent view, cells as in Read.
  virtual absl::StatusOr<ScanPage> Scan(const ScanRequest& request) = 0;

  // Applies conditional row mutations; the answer has one result for each, in the same order. Entries are
  // independent of each other: one may be applied and the next fail, and a crash may leave any subset of a
  // batch applied (never a part of one row mutation). Two entries for the same row are evaluated one after
  // the other, in their order.
  virtual std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) = 0;

  // As Mutate, but a store that holds the cluster's oracle also returns, for each applied mutation, a timestamp that nobody else
  // gets, which saves a request. The largest one of a call was drawn after all its mutations were applied.
  virtual std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations);

  // Whether MutateTogether is possible: the store holds all rows in one place, and its caller's oracle is near.
  virtual bool CanMutateTogether() const { return false; }

  // If the conditions of all rows hold, draws a timestamp from the oracle and applies all mutations, in one atomic step
  // and one durable write. Nobody can miss it: from before the timestamp is drawn until all is applied the rows are
  // closed, that is, every Read of one of them and every Scan waits. So a Read that begins after a later timestamp was
  // drawn sees the mutation. After an error that leaves the outcome open the rows stay closed: reading them is
  // kFailedPrecondition until the store is opened again, because the mutation may then be there.
  virtual absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle);

  // The safe point of garbage collection (percolator/cluster.h): once this returns, no mutation sets a lock at or below
  // it any more, and none made by MutateTogether starts there; they are refused with kOutOfRange. It only grows (a
  // smaller one changes nothing), and survives.
  virtual absl::Status RaiseSafePoint(Timestamp ts) = 0;
  virtual absl::StatusOr<Timestamp> SafePoint() = 0;
  // A safe point at least as recent as the last Read or Scan answered to this caller: enough to tell whether garbage
  // collection may have removed what was read. A distant store knows it without a request.
  virtual absl::StatusOr<Timestamp> SafePointOfReads() { return SafePoint(); }

  // Row keys that divide the table into pieces of about equal size, ascending, distinct; possibly none. For
  // choosing random places to scan: a hint, not a snapshot.
  virtual absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) = 0;

  virtual absl::Status CreateTable(const TableInfo& info) = 0;
  // Drops the table with all its rows. Concurrent operations on it finish before or get kNotFound.
  virtual absl::Status DropTable(const std::string& name) = 0;
  // All tables, by name.
  virtual absl::StatusOr<std::vector<TableInfo>> ListTables() = 0;
  // One of them. kNotFound.
  virtual absl::StatusOr<TableInfo> GetTable(const std::string& name);

  // Waits for what is under way in the background, makes everything acknowledged durable and releases the
  // resources. REQUIRES: no other call is running. Calls after it are kFailedPrecondition. Closing twice is
  // no error. The destructor closes as well, but has no way to report.
  virtual absl::Status Close() = 0;

 protected:
  Store() = default;
};

// How durable a write is when it is acknowledged.
enum class Durability : uint8_t {
  kSync,    // on disk (fsync, shared by concurrent writers): survives loss of power
  kNoSync,  // with the operating system: survives death of the process, may lose the last writes with the
            // power
};

struct RocksStoreOptions {
  Durability durability = Durability::kSync;
  // Memory for blocks read from disk.
  size_t block_cache_bytes = size_t{256} << 20;
  // Memory for the newest versions of cells that were read lately, of the family write. Zero: none are kept.
  size_t version_cache_bytes = size_t{64} << 20;
  // Memory for writes not yet on disk in sorted form, per large family.
  size_t write_buffer_bytes = size_t{64} << 20;
  // Space that stays free on the disk; of a small disk, a twentieth of its size. If less is free, or less than twice what is to be
  // flushed, mutations that only add something fail with kResourceExhausted and are certainly not applied, until there is space
  // again. Zero: no reserve.
  uint64_t reserve_bytes = uint64_t{256} << 20;
  StoreLimits limits;
  // False: a directory that is missing or empty is kNotFound, and nothing is created.
  bool create_if_missing = true;
};

// Opens the store in directory `dir`, creating it if it is missing or empty. One process at a time may have a
// directory open: a second one gets kFailedPrecondition, and so does a directory that holds something else or
// was written by a newer version of the format.
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& dir, const RocksStoreOptions& options = {});

// A store in memory, for tests and simulation. Forgets everything at the end.
std::unique_ptr<Store> NewMemoryStore(const StoreLimits& limits = {});

}  // namespace percolator

#endif  // PERCOLATOR_STORE_H_
