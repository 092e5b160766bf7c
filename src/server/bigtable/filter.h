// Bigtable's RowFilter: what of a row a reader gets.
//
// A filter takes the cells of one row in their order and gives some of them, perhaps changed. It is checked and compiled
// once, for any number of rows.
//
// ORDER       By family, qualifier, newest first. Interleave puts the cells of its branches back into this order; one that
//             two branches give comes twice.
// REGEX       RE2's syntax on bytes (Latin-1): it has to match the whole, "." is any byte but a newline, "\C" any byte.
// CHAIN       Each filter gets what the one before has left. Chains and interleaves have at least two filters.
// CONDITION   Everything or nothing of the predicate's result decides; a branch that is not given gives nothing.
// SINK        What reaches it goes to the reader, past all filters that follow. Not inside a condition.
// LABEL       [a-z0-9-]{1,15}; of the filters of one chain only one may label, because a cell has one label at most.
// LIMITS      20480 bytes, and 20 deep.
// COPIES      Interleaves within chains multiply cells. A row of which more than a million cells come together is
//             kInvalidArgument, so that a small request does not need all memory. The same holds for more than 16 MiB, unless
//             the row itself is larger.
// EMPTY       A filter without any field passes everything. A kind that is not known here is kInvalidArgument.

#ifndef PERCOLATOR_SERVER_BIGTABLE_FILTER_H_
#define PERCOLATOR_SERVER_BIGTABLE_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/timestamp_range.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

// One version of a cell, as seen by Bigtable's clients. It points into a row that somebody else keeps.
struct BigtableCell {
  std::string_view family;
  std::string_view qualifier;
  int64_t timestamp_micros = 0;
  std::string_view value;
  std::string_view label;  // empty: none. Points into the filter
  size_t position = 0;     // in the row as it was read: the order
};
using BigtableCells = std::vector<BigtableCell>;

class BigtableFilter {
 public:
  static constexpr size_t kBytes = 20480;
  static constexpr int kDepth = 20;

  // The filter must outlive what is made of it. kInvalidArgument: the text says what is wrong.
  static absl::StatusOr<BigtableFilter> Compile(const google::bigtable::v2::RowFilter& filter);
  // Of a chain without its first `done` filters; of any other filter, if one is done, what passes everything.
  static absl::StatusOr<BigtableFilter> CompileRest(const google::bigtable::v2::RowFilter& filter, int done);

  // Passes everything.
  BigtableFilter() = default;

  // What the reader gets of a row with these cells, which are in order.
  absl::StatusOr<BigtableCells> Apply(std::string_view row_key, BigtableCells cells) const;

  bool passes_all() const { return !step_; }

  // What is known of the row a filter works on, and where a sink puts cells.
  struct RowState {
    std::string_view key;
    BigtableCells sunk;
    bool too_many = false;  // cells came together: what is left is not the answer
  };
  using Step = std::function<void(RowState& row, BigtableCells& cells)>;

 private:
  explicit BigtableFilter(Step step) : step_(std::move(step)) {}

  Step step_;  // none: everything passes
};

// Both ends are zero or more and multiples of 1000. kInvalidArgument: `field` says where it stood.
absl::Status CheckTimestampRange(const google::bigtable::v2::TimestampRange& range, std::string_view field);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_FILTER_H_
