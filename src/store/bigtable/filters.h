// The contract of percolator/spi/store.h in Bigtable's terms: selectors and conditions as row filters, mutations as
// mutations.
//
// TIME       A timestamp is kept as its thousandfold, because Bigtable takes only whole milliseconds. The largest that fits
//            is kLastWireTimestamp; nothing is ever stored above it.
// ATOMIC     Every filter of a read has an interleave at its top. Google's emulator reads a row in one view only with that; in
//            Bigtable itself it makes no difference. Conditions as filters are never used: they are not atomic.
// UNION      A filter selects what any of the selectors does, once or more often, in any order. Select() makes of that the
//            cells that were asked for, in their order.
// EXACT      Columns are named by ranges from themselves to themselves and not by patterns, which have trouble with bytes
//            that are not ASCII.
// SIZE       Bigtable refuses filters above kFilterBytes. A condition takes about 100 bytes and three times its name for each
//            column. Where that is too much, columns with the same demands are put together into one pattern, which takes
//            little more than the name; but only columns whose names are ASCII. So prewriting reaches to about 1000 columns
//            of 15 bytes in one row. What does not fit then either is refused.

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

// What any of the selectors selects; absent: nothing ever.
std::optional<google::bigtable::v2::RowFilter> FilterOf(const std::vector<Selector>& selectors);

// The cells of a row as this store names them, by family and column, the newest first, each once. kInternal: they are not
// such as this store writes.
absl::StatusOr<std::vector<Cell>> CellsOf(WireRow row);

// Those of `cells`, which are as from CellsOf, that the selectors select, in the order of Store::Read.
std::vector<Cell> Select(const std::vector<Cell>& cells, const std::vector<Selector>& selectors);

// --- Conditions

// When a condition holds: always, never, or by what a filter matches in the row.
struct Predicate {
  enum class Holds : uint8_t { kAlways, kNever, kIfMatched, kUnlessMatched };
  Holds holds = Holds::kAlways;
  google::bigtable::v2::RowFilter filter;  // of the last two
};

// kInvalidArgument: it has more columns than a filter can name.
absl::StatusOr<Predicate> PredicateOf(const Condition& condition);

// The same filter for a read: the row comes back if and only if it matches.
google::bigtable::v2::RowFilter ReadFilterOf(const google::bigtable::v2::RowFilter& predicate);

// --- Mutations

// kInvalidArgument: a timestamp is above kLastWireTimestamp.
absl::Status CheckTimestamps(const RowMutation& mutation);

// Whether a mutation of the row can change anything: to erase nothing can not.
bool HasEffect(const RowMutation& mutation);

// Appends the mutations, without those that can have no effect. REQUIRES: CheckTimestamps.
void AppendMutations(const std::vector<Mutation>& mutations,
                     google::protobuf::RepeatedPtrField<google::bigtable::v2::Mutation>* out);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_FILTERS_H_
