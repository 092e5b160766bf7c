// SPDX-License-Identifier: Apache-2.0

// Bigtable's ReadRows on a Store.
//
// A request becomes ranges of rows and selectors of the store, as far as they can express the filter. The rest of the filter is
// applied to each row after it was read, so each row is one consistent view of the store with every filter. Rows are read in
// pages of at most a few MiB, unless a single row is larger.
//
// Selectors express these parts of a filter that is a chain or an interleave of chains: a column_range of one qualifier (in a
// native table also a whole family, by column_range or by name), then a timestamp_range, then a cells_per_column_limit.
//
// On the wire a row is a sequence of chunks. The first has the key, a chunk has the family and the qualifier if they differ from
// those of the previous one, and the last marks the row as complete. A value of more than kPieceBytes is split. A message has
// complete rows, as many as fit into kMessageBytes, or a single larger row: Google's Go client treats a message that ends
// within a row as a broken stream. So clients that read large rows must accept large messages, as Google's clients do in
// production.
//
// A page without a matching row becomes a message with the server's position. So a client whose deadline has passed can continue
// from there, even if few rows match.
//
// A request with `reversed` gets the same rows in descending order of their keys, and rows_limit keeps the last ones. The order
// of cells within a row does not change.

#ifndef PERCOLATOR_SERVER_BIGTABLE_READ_H_
#define PERCOLATOR_SERVER_BIGTABLE_READ_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/server/bigtable/filter.h"
#include "src/server/bigtable/tables.h"
#include "src/server/requests.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

// Returns InvalidArgument unless the row key has 1 to 4096 bytes, which are Bigtable's limits.
absl::Status CheckRowKey(std::string_view key);

// Returns the requested rows as non-empty, ascending, disjoint ranges. An empty RowSet means all rows. Returns InvalidArgument
// if a key is invalid, or the start of a range is after its end.
absl::StatusOr<std::vector<RowRange>> RangesOf(const google::bigtable::v2::RowSet& rows);

// A plan for reading rows of one table: the store applies the selectors, and then this server the rest of the filter.
struct ReadPlan {
  std::vector<Selector> selectors;
  BigtableFilter rest;
};
// Returns InvalidArgument if the filter is invalid. REQUIRES: `filter` outlives the plan.
absl::StatusOr<ReadPlan> PlanRead(const BigtableTable& table, const google::bigtable::v2::RowFilter& filter);

// Adds the selectors of a column_range, with the timestamp_range and the cells_per_column_limit that follow it in a chain. Also
// used for predicates of native tables. Returns true if `filter` consists of nothing else.
bool ToSelectors(const BigtableTable& table, const google::bigtable::v2::RowFilter& filter,
                 std::vector<Selector>* selectors);

// Converts rows to messages.
class RowChunker {
 public:
  static constexpr size_t kPieceBytes = 1 << 20;
  static constexpr size_t kMessageBytes = 1 << 20;

  // REQUIRES: `cells` is not empty.
  void Add(std::string_view key, const BigtableCells& cells);
  // Returns the approximate size of all added rows.
  size_t bytes() const { return all_bytes_; }
  // Returns the messages of all added rows.
  std::vector<google::bigtable::v2::ReadRowsResponse> Take();

 private:
  std::vector<google::bigtable::v2::ReadRowsResponse> messages_;
  size_t bytes_ = 0;      // the approximate size of the last message
  size_t all_bytes_ = 0;  // the approximate size of all messages
};

// Reads the rows of one request, page by page. Used by one thread at a time.
class RowReader {
 public:
  // Counts large rows in `memory`, unless that is null. REQUIRES: `request` outlives this object.
  static absl::StatusOr<std::unique_ptr<RowReader>> Open(Store* store, BigtableTables* tables,
                                                         const google::bigtable::v2::ReadRowsRequest& request,
                                                         RequestMemory* memory = nullptr);

  // Returns the next messages, possibly none. Asks before each row whether the request was cancelled, and then returns Cancelled.
  absl::StatusOr<std::vector<google::bigtable::v2::ReadRowsResponse>> Next(const std::function<bool()>& cancelled = [] {
    return false;
  });
  bool AtEnd() const { return next_ == ranges_.size() && next_row_ == rows_.size(); }

  size_t selectors() const { return plan_.selectors.size(); }

 private:
  RowReader(Store* store, std::shared_ptr<const BigtableTable> table, ReadPlan plan, std::vector<RowRange> ranges,
            int64_t limit, bool reverse, RequestMemory* memory);

  size_t PageRows() const;
  absl::StatusOr<std::vector<Row>> ReadKeys();
  absl::StatusOr<std::vector<Row>> ScanRange();
  // Returns the last key that is done. Empty: there is none.
  std::string Scanned() const;
  void AddPosition(std::vector<google::bigtable::v2::ReadRowsResponse>* messages);

  Store* const store_;
  const std::shared_ptr<const BigtableTable> table_;
  const ReadPlan plan_;
  const bool reverse_;
  std::vector<RowRange> ranges_;  // in the order in which they are read
  size_t next_ = 0;               // the index of the first unfinished range
  RequestMemory* const memory_;
  RequestMemory::Share share_;  // of rows_
  std::vector<Row> rows_;       // the rows of the page
  size_t next_row_ = 0;         // the index of the first row that was not filtered yet; a filter may enlarge rows
  int64_t left_;                // the remaining rows of rows_limit; negative without a limit
  std::string reported_;        // the last key or position in an answer
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_READ_H_
