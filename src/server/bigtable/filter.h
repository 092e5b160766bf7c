// SPDX-License-Identifier: Apache-2.0

// Bigtable's RowFilter, which selects the cells of a row that a reader gets.
//
// A filter takes the cells of one row, in order, and returns some of them, possibly changed. It is checked and compiled once,
// for any number of rows.
//
// ORDER       Cells are sorted by family, by qualifier, and newest first. Interleave restores this order; a cell that two
//             branches return appears twice.
// REGEX       RE2's syntax on bytes (Latin-1). The expression must match the whole name or value; "." matches any byte except a
//             newline, "\C" any byte.
// CHAIN       Each filter gets the result of the previous one. Chains and interleaves have at least two filters.
// CONDITION   The true branch applies if the predicate returns any cell, otherwise the false branch. An absent branch returns no
//             cells.
// SINK        Sends its cells to the reader, past all later filters. It is not allowed inside a condition.
// LABEL       [a-z0-9-]{1,15}. Only one filter of a chain may label, because a cell has at most one label.
// LIMITS      A filter has at most 20480 bytes and a depth of 20.
// COPIES      Interleaves within chains multiply cells. Apply returns InvalidArgument if a row grows to more than a million
//             cells, so that a small request cannot use all memory. The same applies to more than 16 MiB, unless the row itself
//             is larger.
// WORK        Apply returns InvalidArgument if a row needs more than about a second of processor time, or slightly more if it
//             has many MiB. The regular expressions of a filter have at most 32768 of RE2's instructions together.
// EMPTY       A filter without any field passes all cells. An unknown kind of filter is InvalidArgument.

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

// One version of a cell, as Bigtable clients see it. It points into a row, which must outlive it.
struct BigtableCell {
  std::string_view family;
  std::string_view qualifier;
  int64_t timestamp_micros = 0;
  std::string_view value;
  std::string_view label;  // Empty if the cell has no label. Points into the filter.
  size_t position = 0;     // The index in the row as it was read, which defines the order.
};
using BigtableCells = std::vector<BigtableCell>;

class BigtableFilter {
 public:
  static constexpr size_t kMaxBytes = 20480;
  static constexpr int kMaxDepth = 20;
  // The limit of work on one row, in units of about 4 ns. RE2 needs at most one unit for each byte and instruction.
  static constexpr size_t kMaxRowWork = 250'000'000;
  static constexpr size_t kMaxWorkPerByte =
      16;  // added to the limit, so that a simple filter works on a row of any size

  // Returns InvalidArgument if the filter is invalid. REQUIRES: `filter` outlives the result.
  static absl::StatusOr<BigtableFilter> Compile(const google::bigtable::v2::RowFilter& filter);
  // Compiles a chain without its first `done` filters. For any other filter, a `done` of 1 returns a filter that passes all
  // cells.
  static absl::StatusOr<BigtableFilter> CompileRest(const google::bigtable::v2::RowFilter& filter, int done);

  // Passes all cells.
  BigtableFilter() = default;

  // Returns the cells that the reader gets. `cells` are those of the row, in order. Adds the work that it did
  // to `work`, unless that is null. Thread-safe.
  absl::StatusOr<BigtableCells> Apply(std::string_view row_key, BigtableCells cells, size_t* work = nullptr) const;

  bool passes_all() const { return !step_; }

  // The state of a filter during one row.
  struct RowState {
    std::string_view key;
    BigtableCells sunk;     // the cells of sinks
    bool too_many = false;  // The limit of cells was exceeded, and the result is invalid.
    size_t max_work = kMaxRowWork;
    size_t work = 0;  // If it exceeds the limit, the result is invalid.

    // Adds work. Returns false if the limit is exceeded.
    bool Spend(size_t more) { return (work += more) <= max_work; }
  };
  using Step = std::function<void(RowState& row, BigtableCells& cells)>;

 private:
  explicit BigtableFilter(Step step) : step_(std::move(step)) {}

  Step step_;  // empty if all cells pass
};

// Returns InvalidArgument, with the name of the field, unless both ends are multiples of 1000 and not negative.
absl::Status CheckTimestampRange(const google::bigtable::v2::TimestampRange& range, std::string_view field);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_FILTER_H_
