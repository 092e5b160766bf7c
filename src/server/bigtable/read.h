// Bigtable's ReadRows on a Store.
//
// A request is turned into ranges of rows and into selectors of the store, as far as the filter can be expressed by them;
// what remains of the filter is applied to each row after it was read. So each row is one consistent view of the store,
// whatever the filter. Rows come in pages; a page is a few MiB at most, unless a single row is more.
//
// What the store does by itself, of a filter that is a chain or an interleave of chains: a column_range of one qualifier (in
// a native table also a whole family, by column_range or by name), then a timestamp_range, then a cells_per_column_limit.
//
// On the wire a row is a sequence of chunks. Its key is in the first, its family and qualifier where they change, and the
// last says that the row is complete. A value of more than kPieceBytes is cut into pieces. A message has whole rows, as many
// as fit into kMessageBytes, or one that is larger: Google's client for Go takes a message that ends within a row for a
// broken stream. So a client that is to read large rows must accept large messages, as Google's clients do in production.
//
// A page in which nothing matched is a message too, which says how far the server has come: so a client whose time is over can go
// on from there, however few rows match.
//
// A request that has `reversed` set gets the same rows in descending order of their keys; rows_limit keeps the last ones.
// The cells of a row come in the same order either way.

#ifndef PERCOLATOR_SERVER_BIGTABLE_READ_H_
#define PERCOLATOR_SERVER_BIGTABLE_READ_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/server/bigtable/filter.h"
#include "src/server/bigtable/tables.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

// As Bigtable refuses them: a row key is of 1 to 4096 bytes. kInvalidArgument.
absl::Status CheckRowKey(std::string_view key);

// The rows that are asked for, as ranges that are not empty, ascending, and apart from each other; nothing asked for is all
// of them. kInvalidArgument: a key that can't be, or a range whose start is behind its end.
absl::StatusOr<std::vector<RowRange>> RangesOf(const google::bigtable::v2::RowSet& rows);

// How to read of one table: first the selectors, then the filter.
struct ReadPlan {
  std::vector<Selector> selectors;
  BigtableFilter rest;
};
// `filter` must outlive the plan. kInvalidArgument: it is wrong.
absl::StatusOr<ReadPlan> PlanRead(const BigtableTable& table, const google::bigtable::v2::RowFilter& filter);

// The selectors of one column_range, with the time and the count that follow it in a chain: the part of the above that
// predicates of native tables need too. True: `filter` is nothing else.
bool ToSelectors(const BigtableTable& table, const google::bigtable::v2::RowFilter& filter,
                 std::vector<Selector>* selectors);

// Makes messages of rows.
class RowChunker {
 public:
  static constexpr size_t kPieceBytes = 1 << 20;
  static constexpr size_t kMessageBytes = 1 << 20;

  // REQUIRES: there are cells.
  void Add(std::string_view key, const BigtableCells& cells);
  // All that was added, about.
  size_t bytes() const { return all_bytes_; }
  // The messages for all that was added.
  std::vector<google::bigtable::v2::ReadRowsResponse> Take();

 private:
  std::vector<google::bigtable::v2::ReadRowsResponse> messages_;
  size_t bytes_ = 0;      // of the last, about
  size_t all_bytes_ = 0;  // of all
};

// The rows of one request, page by page.
class RowReader {
 public:
  // The request must outlive this.
  static absl::StatusOr<std::unique_ptr<RowReader>> Open(Store* store, BigtableTables* tables,
                                                         const google::bigtable::v2::ReadRowsRequest& request);

  // The next messages; possibly none.
  absl::StatusOr<std::vector<google::bigtable::v2::ReadRowsResponse>> Next();
  bool AtEnd() const { return next_ == ranges_.size() && next_row_ == rows_.size(); }

  size_t selectors() const { return plan_.selectors.size(); }

 private:
  RowReader(Store* store, std::shared_ptr<const BigtableTable> table, ReadPlan plan, std::vector<RowRange> ranges,
            int64_t limit, bool reverse);

  size_t PageRows() const;
  absl::StatusOr<std::vector<Row>> ReadKeys();
  absl::StatusOr<std::vector<Row>> ScanRange();
  void TellProgress(std::vector<google::bigtable::v2::ReadRowsResponse>* messages);

  Store* const store_;
  const std::shared_ptr<const BigtableTable> table_;
  const ReadPlan plan_;
  const bool reverse_;
  std::vector<RowRange> ranges_;  // in the order in which they are read
  size_t next_ = 0;               // of the ranges, the first that is not done
  std::vector<Row> rows_;         // that were read
  size_t next_row_ = 0;           // of these, the first that is not done: a filter may make much of each
  int64_t left_;                  // rows that may still come; negative: any number
  std::string told_;              // the last key in an answer: of a row, or how far the server has come
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_READ_H_
