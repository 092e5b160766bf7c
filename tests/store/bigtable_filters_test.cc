// SPDX-License-Identifier: Apache-2.0

// Selectors, conditions and mutations in Bigtable's terms.

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/store/bigtable/filters.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

using ::google::bigtable::v2::RowFilter;
using Holds = Predicate::Holds;

// A filter on one line: data[a..b] @[1,2) *3, chains in (), interleaves in {}.
std::string Text(const RowFilter& filter) {
  const auto joined = [](const auto& parts, const char* open, const char* close) {
    std::string text = open;
    for (const RowFilter& part : parts) text += StrCat(text.size() > 1 ? " " : "", Text(part));
    return text + close;
  };
  if (filter.has_chain()) return joined(filter.chain().filters(), "(", ")");
  if (filter.has_interleave()) return joined(filter.interleave().filters(), "{", "}");
  if (filter.has_column_range_filter()) {
    const auto& range = filter.column_range_filter();
    if (range.start_qualifier_case() == 0 && range.end_qualifier_case() == 0) return range.family_name();
    return StrCat(range.family_name(), "[", range.start_qualifier_closed(), "..",
                  range.has_end_qualifier_open() ? "<" + range.end_qualifier_open() : range.end_qualifier_closed(),
                  "]");
  }
  if (filter.has_timestamp_range_filter()) {
    return StrCat("@[", filter.timestamp_range_filter().start_timestamp_micros(), ",",
                  filter.timestamp_range_filter().end_timestamp_micros(), ")");
  }
  if (filter.has_cells_per_column_limit_filter()) return StrCat("*", filter.cells_per_column_limit_filter());
  if (filter.has_cells_per_row_offset_filter()) return StrCat("+", filter.cells_per_row_offset_filter());
  if (filter.has_column_qualifier_regex_filter()) return StrCat("/", filter.column_qualifier_regex_filter(), "/");
  if (filter.block_all_filter()) return "none";
  return "?";
}

std::string FilterText(const std::vector<Selector>& selectors) {
  const std::optional<RowFilter> filter = FilterOf(selectors);
  return filter.has_value() ? Text(*filter) : "nothing";
}

TimestampRange Between(uint64_t from, uint64_t until) { return {Timestamp(from), Timestamp(until)}; }

TEST(BigtableFilterTest, EveryReadHasAnInterleaveAtItsTop) {
  EXPECT_EQ(FilterText({{Family::kData, "c"}}), "{data[c..c] none}");
  EXPECT_EQ(FilterText({{Family::kData, std::nullopt}}), "{data none}");
  EXPECT_EQ(FilterText({{Family::kData, ""}, {Family::kLock, std::nullopt}}), "{data[..] lock}");
}

TEST(BigtableFilterTest, TimestampsAreThousandfoldAndEndBeforeTheNext) {
  EXPECT_EQ(FilterText({{Family::kLock, "c", TimestampRange::UpTo(Timestamp(7)), 1},
                        {Family::kWrite, "c", TimestampRange::From(Timestamp(7))},
                        {Family::kData, "c", TimestampRange::Exactly(Timestamp(7)), 3}}),
            "{(lock[c..c] @[0,8000) *1) (write[c..c] @[7000,0)) (data[c..c] @[7000,8000) *3)}");
  EXPECT_EQ(FilterText({{Family::kData, "c", TimestampRange::Exactly(kLastWireTimestamp)}}),
            "{(data[c..c] @[9223372036854775000,0)) none}");
}

TEST(BigtableFilterTest, EmptySelectorsAreOmitted) {
  EXPECT_EQ(FilterText({}), "nothing");
  EXPECT_EQ(FilterText({{Family::kData, "c", Between(5, 5)}, {Family::kData, "c", Between(5, 3)}}), "nothing");
  EXPECT_EQ(FilterText({{Family::kData, "c", TimestampRange::From(kLastWireTimestamp.Next())}}), "nothing");
  EXPECT_EQ(FilterText({{Family::kData, "c", Between(5, 5)}, {Family::kData, "d"}}), "{data[d..d] none}");
}

TEST(BigtableFilterTest, ManySelectorsOfOneKindBecomeOneThatSelectsMore) {
  std::vector<Selector> selectors;
  for (int i = 0; i < 1000; ++i) {
    selectors.push_back({Family::kLock, absl::StrFormat("column%04d", i), TimestampRange::UpTo(Timestamp(9)), 1});
    selectors.push_back({Family::kWrite, absl::StrFormat("column%04d", i), TimestampRange::UpTo(Timestamp(9)), 1});
  }
  EXPECT_EQ(FilterText(selectors),
            "{(lock[column0000..column0999] @[0,10000) *1) (write[column0000..column0999] @[0,10000) *1)}");
  selectors.push_back({Family::kWrite, std::nullopt, TimestampRange::UpTo(Timestamp(9)), 1});
  EXPECT_EQ(FilterText(selectors), "{(lock[column0000..column0999] @[0,10000) *1) (write @[0,10000) *1)}");
}

TEST(BigtableFilterTest, SelectorsOfManyKindsBecomeOneOfAll) {
  std::vector<Selector> selectors;
  for (uint64_t i = 1; i <= 1000; ++i) {
    selectors.push_back({Family::kData, std::to_string(i), TimestampRange::Exactly(Timestamp(i)), 1});
  }
  EXPECT_EQ(FilterText(selectors), "{(data[1..999] @[1000,1001000)) none}");
}

TEST(BigtableFilterTest, LongColumnsAreSelectedByTheirPrefix) {
  const std::string column(16 << 10, 'x');
  const std::string border(256, 'x');
  EXPECT_EQ(FilterText({{Family::kData, column}}), "{data[" + border + "..<" + border.substr(1) + "y] none}");
  EXPECT_EQ(FilterText({{Family::kData, std::string(16 << 10, '\xff')}}),
            "{data[" + std::string(256, '\xff') + "..] none}");
}

std::vector<Cell> Cells() {
  WireRow row{"r",
              {{"write", "a", 3000, "w3", {}},
               {"data", "b", 1000, "b1", {}},
               {"data", "a", 1000, "a1", {}},
               {"data", "a", 2000, "a2", {}},
               {"data", "a", 2000, "a2", {}},
               {"data", "a", 3000, "a3", {}}}};
  return CellsOf(std::move(row)).value();
}

TEST(BigtableCellsTest, AreSortedWithoutDuplicates) {
  EXPECT_EQ(ToText(Cells()), "data:a@3=a3 data:a@2=a2 data:a@1=a1 data:b@1=b1 write:a@3=w3");
}

TEST(BigtableCellsTest, ForeignCellsAreRefused) {
  EXPECT_THAT(CellsOf({"r", {{"other", "a", 1000, "", {}}}}), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(CellsOf({"r", {{"data", "a", 1001, "", {}}}}), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(CellsOf({"r", {{"data", "a", -1000, "", {}}}}), StatusIs(absl::StatusCode::kInternal));
}

TEST(BigtableCellsTest, CellsAreSelectedInTheOrderOfTheSelectors) {
  EXPECT_EQ(ToText(Select(Cells(), {{Family::kWrite, std::nullopt},
                                    {Family::kData, "b"},
                                    {Family::kData, "a", Between(1, 3), 1},
                                    {Family::kData, std::nullopt, {}, 1},
                                    {Family::kLock, std::nullopt},
                                    {Family::kData, "aa"},
                                    {Family::kData, "a"}})),
            "write:a@3=w3 data:b@1=b1 data:a@2=a2 data:a@3=a3 data:b@1=b1 data:a@3=a3 data:a@2=a2 data:a@1=a1");
}

std::string PredicateText(Condition::Quantifier quantifier, const std::vector<CellRange>& cells) {
  const absl::StatusOr<Predicate> predicate = PredicateOf({quantifier, cells});
  if (!predicate.ok()) return predicate.status().ToString();
  switch (predicate->holds) {
    case Holds::kAlways:
      return "always";
    case Holds::kNever:
      return "never";
    case Holds::kIfMatched:
      return "if " + Text(predicate->filter);
    case Holds::kUnlessMatched:
      return "unless " + Text(predicate->filter);
  }
  return "?";
}

constexpr auto kNone = Condition::Quantifier::kNone;
constexpr auto kAny = Condition::Quantifier::kAny;
constexpr auto kAll = Condition::Quantifier::kAll;

TEST(BigtablePredicateTest, ConditionsAreFilters) {
  const CellRange lock{Family::kLock, "c", TimestampRange::All()};
  const CellRange write{Family::kWrite, "c", TimestampRange::From(Timestamp(5))};
  EXPECT_EQ(PredicateText(kNone, {lock}), "unless lock[c..c]");
  EXPECT_EQ(PredicateText(kAny, {lock}), "if lock[c..c]");
  EXPECT_EQ(PredicateText(kAll, {lock}), "if lock[c..c]");
  EXPECT_EQ(PredicateText(kNone, {lock, write}), "unless {lock[c..c] (write[c..c] @[5000,0))}");
  EXPECT_EQ(PredicateText(kAny, {lock, write}), "if {lock[c..c] (write[c..c] @[5000,0))}");
  EXPECT_EQ(PredicateText(kAll, {lock, write}), "if ({(lock[c..c] *1) (write[c..c] @[5000,0) *1)} +1)");
  EXPECT_EQ(PredicateText(kAll, {lock, write, lock}), "if ({(lock[c..c] *1) (write[c..c] @[5000,0) *1)} +1)");
}

TEST(BigtablePredicateTest, EmptyRangesAreDecidedWithoutAFilter) {
  const CellRange lock{Family::kLock, "c", TimestampRange::All()};
  const CellRange empty{Family::kLock, "c", Between(3, 3)};
  for (const auto quantifier : {kNone, kAny, kAll}) EXPECT_EQ(PredicateText(quantifier, {}), "always");
  EXPECT_EQ(PredicateText(kNone, {empty}), "always");
  EXPECT_EQ(PredicateText(kAny, {empty}), "never");
  EXPECT_EQ(PredicateText(kAll, {empty}), "never");
  EXPECT_EQ(PredicateText(kNone, {empty, lock}), "unless lock[c..c]");
  EXPECT_EQ(PredicateText(kAny, {empty, lock}), "if lock[c..c]");
  EXPECT_EQ(PredicateText(kAll, {empty, lock}), "never");
}

// Like a prewrite: the marker of the row, and for every column no lock and no newer write.
std::vector<CellRange> PrewriteCells(int columns, const std::string& stem) {
  std::vector<CellRange> cells = {
      {Family::kWrite, std::string("\0rollback", 9), TimestampRange::Exactly(Timestamp(5))}};
  for (int i = 0; i < columns; ++i) {
    const std::string column = StrCat(stem, absl::StrFormat("%04d", i));
    cells.push_back({Family::kWrite, column, TimestampRange::From(Timestamp(5))});
    cells.push_back({Family::kLock, column, TimestampRange::All()});
  }
  return cells;
}

TEST(BigtablePredicateTest, ManyColumnsBecomeAPattern) {
  const absl::StatusOr<Predicate> plain = PredicateOf({kNone, PrewriteCells(100, "column.name")});
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->filter.interleave().filters_size(), 201);
  const absl::StatusOr<Predicate> prewrite = PredicateOf({kNone, PrewriteCells(1000, "column.name")});
  ASSERT_THAT(prewrite, IsOk());
  EXPECT_LE(prewrite->filter.ByteSizeLong(), kFilterBytes);
  const std::string text = Text(prewrite->filter);
  EXPECT_THAT(text, ::testing::HasSubstr("(/column\\.name0000|column\\.name0001|"));
  EXPECT_THAT(text, ::testing::HasSubstr("|column\\.name0999/ {lock (write @[5000,0))})"));

  std::vector<CellRange> locks;
  for (int i = 0; i < 1000; ++i) {
    locks.push_back({Family::kLock, absl::StrFormat("c%04d", i), TimestampRange::Exactly(Timestamp(5))});
  }
  const absl::StatusOr<Predicate> commit = PredicateOf({kAll, locks});
  ASSERT_THAT(commit, IsOk());
  EXPECT_THAT(Text(commit->filter), ::testing::EndsWith("|c0999/ (lock @[5000,6000) *1)) +999)"));
}

TEST(BigtablePredicateTest, BytesThatPatternsTreatDifferentlyStayExact) {
  std::vector<CellRange> cells = PrewriteCells(300, "column.name");
  cells.push_back({Family::kLock, "\xc3\xa4", TimestampRange::All()});
  EXPECT_THAT(PredicateText(kNone, cells), ::testing::HasSubstr("lock[\xc3\xa4..\xc3\xa4]"));
}

TEST(BigtablePredicateTest, AConditionThatIsTooLargeIsRefusedWithTheLimit) {
  const absl::StatusOr<Predicate> many = PredicateOf({kNone, PrewriteCells(2000, "column.name")});
  EXPECT_THAT(many, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(many.status().message()), ::testing::HasSubstr("limit of 20480"));
  EXPECT_THAT(PredicateOf({kNone, PrewriteCells(1000, "\xc3\xa4")}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(BigtableMutationTest, MutationsWithoutEffectAreOmitted) {
  const RowMutation row{
      "t",
      "r",
      {},
      {Mutation::Set(Family::kData, "c", Timestamp(5), "v"),
       Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(Timestamp(5))),
       Mutation::Erase(Family::kLock, "c", Between(5, 5)), Mutation::Erase(Family::kLock, "c", TimestampRange::All())}};
  google::bigtable::v2::MutateRowRequest request;
  AppendMutations(row.mutations, request.mutable_mutations());
  ASSERT_EQ(request.mutations_size(), 3);
  EXPECT_EQ(request.mutations(0).set_cell().timestamp_micros(), 5000);
  EXPECT_EQ(request.mutations(1).delete_from_column().time_range().start_timestamp_micros(), 5000);
  EXPECT_EQ(request.mutations(1).delete_from_column().time_range().end_timestamp_micros(), 6000);
  EXPECT_EQ(request.mutations(2).delete_from_column().time_range().end_timestamp_micros(), 0);
  EXPECT_TRUE(HasEffect(row));
  EXPECT_FALSE(HasEffect({"t", "r", {}, {Mutation::Erase(Family::kLock, "c", Between(5, 5))}}));
}

TEST(BigtableMutationTest, TimestampsBeyondTheLastAreRefused) {
  EXPECT_THAT(CheckTimestamps({"t", "r", {}, {Mutation::Set(Family::kData, "c", kLastWireTimestamp, "")}}), IsOk());
  EXPECT_THAT(CheckTimestamps({"t", "r", {}, {Mutation::Set(Family::kData, "c", kLastWireTimestamp.Next(), "")}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace percolator
