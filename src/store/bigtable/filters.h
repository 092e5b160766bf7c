// SPDX-License-Identifier: Apache-2.0

// Translates the contract of percolator/spi/store.h for Bigtable: selectors and conditions become row filters,
// mutations become Bigtable's mutations.
//
// TIME       A timestamp is stored times 1000, because Bigtable accepts only whole milliseconds. The largest that fits is
//            kLastWireTimestamp; no cell is ever stored above it.
// ATOMIC     Every filter of a read has an interleave at its top. Only with that does Google's emulator read a row in one view;
//            in Bigtable itself it makes no difference. Filters with conditions are never used: they are not atomic.
// UNION      A filter passes the cells of all selectors, each once or more often, in any order. Select() returns the
//            selected cells, each once, in the order of Store::Read.
// EXACT      Columns are named by ranges that begin and end with them, not by patterns, which fail for some bytes that are not
//            ASCII.
// SIZE       Bigtable refuses filters above kFilterBytes. A condition takes about 100 bytes and three times the name for each
//            column. If that is too large, columns with the same demands are combined into one pattern, which takes little
//            more than their names; this works only for ASCII names. So a prewrite can have about 1000 columns of 15 bytes
//            in one row. A larger condition is refused.

#ifndef PERCOLATOR_STORE_BIGTABLE_FILTERS_H_
#define PERCOLATOR_STORE_BIGTABLE_FILTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/store/bigtable/row_parser.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

inline constexpr Timestamp kLastWireTimestamp = Timestamp(9'223'372'036'854'775);
inline constexpr size_t kFilterBytes = 20'480;

// --- Reading

// Returns a filter that passes the cells of any of the selectors. Returns nullopt if no cell can ever be selected.
std::optional<google::bigtable::v2::RowFilter> FilterOf(const std::vector<Selector>& selectors);

// Returns the cells of a row as this store names them, by family and column, the newest first, each once. Returns
// Internal if this store cannot have written them.
absl::StatusOr<std::vector<Cell>> CellsOf(WireRow row);

// Returns those of `cells` that the selectors select, in the order of Store::Read. `cells` are as CellsOf returns them.
std::vector<Cell> Select(const std::vector<Cell>& cells, const std::vector<Selector>& selectors);

// --- Conditions

// When a condition holds: always, never, or depending on whether a filter matches in the row.
struct Predicate {
  enum class Holds : uint8_t { kAlways, kNever, kIfMatched, kUnlessMatched };
  Holds holds = Holds::kAlways;
  google::bigtable::v2::RowFilter filter;  // of kIfMatched and kUnlessMatched
};

// Returns InvalidArgument if the condition has more columns than a filter can name.
absl::StatusOr<Predicate> PredicateOf(const Condition& condition);

// Returns the same filter for a read: the row is returned if and only if the predicate matches.
google::bigtable::v2::RowFilter ReadFilterOf(const google::bigtable::v2::RowFilter& predicate);

// --- Mutations

// Returns InvalidArgument if a timestamp is above kLastWireTimestamp.
absl::Status CheckTimestamps(const RowMutation& mutation);

// Returns whether the mutation of the row can change anything. Erasing an empty range cannot.
bool HasEffect(const RowMutation& mutation);

// Appends the mutations, except those that cannot have an effect. REQUIRES: CheckTimestamps returned OK.
void AppendMutations(const std::vector<Mutation>& mutations,
                     google::protobuf::RepeatedPtrField<google::bigtable::v2::Mutation>* out);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_FILTERS_H_
