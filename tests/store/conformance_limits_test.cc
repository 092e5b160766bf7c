// SPDX-License-Identifier: Apache-2.0

// Conformance: every limit, exactly at it and one beyond it.

#include <string>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

std::string Of(size_t size, char c = 'x') { return std::string(size, c); }

StoreLimits SmallLimits() {
  StoreLimits limits;
  limits.max_row_key_bytes = 20;
  limits.max_column_bytes = 30;
  limits.max_value_bytes = 100;
  limits.max_row_selectors = 10;
  limits.max_row_mutations = 10;
  limits.max_row_mutation_bytes = 500;
  return limits;
}

TEST_P(StoreTest, TheLargestRowKeyColumnAndValueAreStored) {
  const StoreLimits limits;
  const std::string key = Of(limits.max_row_key_bytes, '\0'), other = Of(limits.max_row_key_bytes, '\xff');
  const std::string column = Of(limits.max_column_bytes, '\0'), value = Of(limits.max_value_bytes, 'v');
  Apply(key, {Set(column, 1, value)}, None({At(column, 1)}));
  Apply(other, {Set(Of(limits.max_column_bytes, '\xff'), 1, "")});
  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", key, {Column(column)}}});
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->at(0).cells.size(), 1);
  EXPECT_TRUE(rows->at(0).cells[0].value == value);
  EXPECT_THAT(ScanKeys(), ElementsAre(key, other));
  EXPECT_THAT(ScanKeys(RowRange::Single(key)), ElementsAre(key));
  EXPECT_THAT(ScanKeys(RowRange::All().After(key)), ElementsAre(other));
}

TEST_P(StoreTest, OneByteBeyondTheDefaultLimitsIsRefused) {
  const StoreLimits limits;
  EXPECT_THAT(Mutate(Of(limits.max_row_key_bytes + 1), {Set("c", 1, "")}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("r", {Set(Of(limits.max_column_bytes + 1), 1, "")}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("r", {Set("c", 1, Of(limits.max_value_bytes + 1))}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Scan(), "");
}

TEST_P(StoreTest, LongKeysThatDifferInTheirLastByteAreKeptApart) {
  const std::string stem = Of(StoreLimits().max_row_key_bytes - 1, 'k');
  const std::vector<std::string> keys = {stem, stem + '\0', stem + 'a', stem + '\xff'};
  ApplyRows(keys);
  EXPECT_EQ(ScanKeys(), keys);
  EXPECT_THAT(ScanKeys({stem + '\0', stem + '\xff'}), ElementsAre(stem + '\0', stem + 'a'));
}

// A store does not gather the cells that exceed the limit, whether columns are named or not.
TEST_P(StoreLimitsTest, ARequestLimitsTheBytesOfARow) {
  Open(StoreLimits());
  Apply("a", {Set("c", 1, Of(9))});
  Apply("b", {Set("c", 1, Of(9)), Set("c", 2, Of(9)), Set("d", 1, Of(9))});
  Apply("e", {Set("c", 1, Of(9))});
  for (const std::vector<Selector>& selectors : {std::vector<Selector>{Columns(Family::kData)},
                                                 {Column("c"), Column("d")},
                                                 {Column("c", {}, 2), Column("d", {}, 1)}}) {
    EXPECT_THAT(store_->Read({{"t", "b", selectors, 30}}), IsOk());
    for (const size_t bytes : {29, 20, 19, 0}) {
      EXPECT_THAT(store_->Read({{"t", "b", selectors, bytes}}), StatusIs(absl::StatusCode::kResourceExhausted));
    }
    for (const bool reverse : {false, true}) {
      ScanRequest scan = ScanOf(RowRange::All(), selectors);
      scan.reverse = reverse;
      scan.max_row_bytes = 30;
      absl::StatusOr<ScanPage> page = store_->Scan(scan);
      ASSERT_THAT(page, IsOk());
      EXPECT_EQ(page->rows.size(), 3);
      scan.max_row_bytes = 29;
      page = store_->Scan(scan);
      ASSERT_THAT(page, IsOk());
      ASSERT_EQ(page->rows.size(), 1);
      EXPECT_EQ(page->rows[0].key, reverse ? "e" : "a");
      ASSERT_TRUE(page->resume.has_value());
      scan.ContinueAt(*page->resume);
      EXPECT_THAT(store_->Scan(scan), StatusIs(absl::StatusCode::kResourceExhausted));
      scan.max_row_bytes = 30;
      page = store_->Scan(scan);
      ASSERT_THAT(page, IsOk());
      EXPECT_EQ(page->rows.size(), 2);
    }
  }
}

TEST_P(StoreLimitsTest, RowKeyBytes) {
  Open(SmallLimits());
  Apply(Of(20), {Set("c", 1, "")});
  EXPECT_THAT(Mutate(Of(21), {Set("c", 1, "")}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Read(Of(20)), "data:c@1=");
  EXPECT_THAT(store_->Read({{"t", Of(21), {}}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ScanKeys(), ElementsAre(Of(20)));
}

TEST_P(StoreLimitsTest, RowRangeBordersMayBeOneByteLongerThanAKey) {
  Open(SmallLimits());
  ApplyRows({Of(20)});
  EXPECT_THAT(ScanKeys({Of(20), Of(21)}), ElementsAre(Of(20)));
  EXPECT_THAT(ScanKeys({Of(21), std::nullopt}), ::testing::IsEmpty());
  EXPECT_THAT(store_->Scan(ScanOf({Of(22), std::nullopt}, {})), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Scan(ScanOf({"", Of(22)}, {})), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StoreLimitsTest, ColumnBytes) {
  Open(SmallLimits());
  Apply("r", {Set(Of(30), 1, ""), Erase(Of(30, 'y'), {})}, None({At(Of(30), 1)}));
  EXPECT_THAT(Mutate("r", {Set(Of(31), 1, "")}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("r", {Erase(Of(31), {})}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("r", {}, None({At(Of(31), 1)})), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Read("r", {Column(Of(30))}), "data:" + Of(30) + "@1=");
  EXPECT_THAT(store_->Read({{"t", "r", {Column(Of(31))}}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), {Column(Of(31))})), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StoreLimitsTest, ValueBytes) {
  Open(SmallLimits());
  Apply("r", {Set("c", 1, Of(100))});
  EXPECT_THAT(Mutate("r", {Set("c", 1, Of(101))}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Read("r"), "data:c@1=" + Of(100));
}

TEST_P(StoreLimitsTest, RowSelectors) {
  Open(SmallLimits());
  Apply("r", {Set("c", 1, "")});
  std::vector<Selector> selectors(10, Column("c"));
  EXPECT_THAT(store_->Read({{"t", "r", selectors}}), IsOk());
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), selectors)), IsOk());
  selectors.push_back(Column("c"));
  EXPECT_THAT(store_->Read({{"t", "r", selectors}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), selectors)), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StoreLimitsTest, RowMutations) {
  Open(SmallLimits());
  std::vector<Mutation> sets;
  std::vector<CellRange> cells;
  for (uint64_t ts = 1; ts <= 10; ++ts) {
    sets.push_back(Set("c", ts, ""));
    cells.push_back(At("c", ts));
  }
  Apply("r", sets, None(cells));
  EXPECT_EQ(Mutate("r", {}, All(cells)).value(), MutateResult::kApplied);
  sets.push_back(Set("c", 11, ""));
  cells.push_back(At("c", 11));
  EXPECT_THAT(Mutate("s", sets), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("s", {Set("c", 1, "")}, None(cells)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ScanKeys(), ElementsAre("r"));
}

TEST_P(StoreLimitsTest, RowMutationBytes) {
  Open(SmallLimits());
  std::vector<Mutation> sets;  // with the row key of 5 bytes: 5 + 4 * (10 + 100) + (5 + 50) = 500
  for (uint64_t ts = 1; ts <= 4; ++ts) sets.push_back(Set(Of(10), ts, Of(100)));
  sets.push_back(Set(Of(5), 5, Of(50)));
  Apply("exact", sets);
  sets.back().value += 'x';
  EXPECT_THAT(Mutate("above", sets), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ScanKeys(), ElementsAre("exact"));
}

TEST_P(StoreLimitsTest, NothingOfARowMutationBeyondALimitIsApplied) {
  Open(SmallLimits());
  Apply("r", {Set("c", 1, "old")});
  EXPECT_THAT(Mutate("r", {Erase("c", {}), Set("c", 2, "new"), Set("d", 1, Of(101))}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Read("r"), "data:c@1=old");
}

}  // namespace
}  // namespace percolator
