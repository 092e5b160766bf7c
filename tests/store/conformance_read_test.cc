// SPDX-License-Identifier: Apache-2.0

// Conformance: Read, and the order and identity of versions, columns, rows and tables.

#include <string>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

TEST_P(StoreTest, ReadOfAMissingRowHasNoCells) { EXPECT_EQ(Read("r"), ""); }

TEST_P(StoreTest, EmptyBatchesHaveEmptyAnswers) {
  absl::StatusOr<std::vector<Row>> rows = store_->Read({});
  ASSERT_THAT(rows, IsOk());
  EXPECT_TRUE(rows->empty());
  EXPECT_TRUE(store_->Mutate({}).empty());
}

TEST_P(StoreTest, ReadWithoutSelectorsHasNoCells) {
  Apply("r", {Set("c", 1, "v")});
  EXPECT_EQ(Read("r", {}), "");
}

TEST_P(StoreTest, VersionsComeNewestFirst) {
  for (uint64_t ts : {5, 300, 1, 70000, 256}) Apply("r", {Set("c", ts, std::to_string(ts))});
  EXPECT_EQ(Read("r"), "data:c@70000=70000 data:c@300=300 data:c@256=256 data:c@5=5 data:c@1=1");
}

TEST_P(StoreTest, SetReplacesTheVersionAtItsTimestamp) {
  Apply("r", {Set("c", 1, "old"), Set("c", 2, "other")});
  Apply("r", {Set("c", 1, "new")});
  EXPECT_EQ(Read("r"), "data:c@2=other data:c@1=new");
}

TEST_P(StoreTest, TimestampRangeIncludesItsStartAndExcludesItsEnd) {
  Apply("r", {Set("c", 2, ""), Set("c", 3, ""), Set("c", 4, ""), Set("c", 5, "")});
  EXPECT_EQ(Read("r", {Column("c", Between(3, 5))}), "data:c@4= data:c@3=");
  EXPECT_EQ(Read("r", {Column("c", Between(3, 4))}), "data:c@3=");
  EXPECT_EQ(Read("r", {Column("c", Between(0, 2))}), "");
  EXPECT_EQ(Read("r", {Column("c", Between(0, 3))}), "data:c@2=");
  EXPECT_EQ(Read("r", {Column("c", Between(5, 100))}), "data:c@5=");
  EXPECT_EQ(Read("r", {Column("c", Between(6, 100))}), "");
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::UpTo(Timestamp(3)))}), "data:c@3= data:c@2=");
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::From(Timestamp(4)))}), "data:c@5= data:c@4=");
}

TEST_P(StoreTest, TheFirstAndTheLastTimestampAreUsable) {
  Apply("r", {Set("c", 0, "first"), Set("c", 7, "mid"), Set("c", LastTimestamp(), "last")});
  const std::string last = "data:c@" + std::to_string(LastTimestamp()) + "=last";
  EXPECT_EQ(Read("r"), last + " data:c@7=mid data:c@0=first");
  EXPECT_EQ(Read("r", {Column("c", Between(0, 1))}), "data:c@0=first");
  EXPECT_EQ(Read("r", {Column("c", Between(1, LastTimestamp()))}), "data:c@7=mid");
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::From(Timestamp(LastTimestamp())))}), last);
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::All(), 1)}), last);
  Apply("r", {EraseAt("c", LastTimestamp()), EraseAt("c", 0)}, All({At("c", 0), At("c", LastTimestamp())}));
  EXPECT_EQ(Read("r"), "data:c@7=mid");
}

TEST_P(StoreTest, AnEmptyTimestampRangeSelectsNothing) {
  Apply("r", {Set("c", 2, ""), Set("c", 3, ""), Set("c", 4, "")});
  EXPECT_EQ(Read("r", {Column("c", Between(3, 3))}), "");
  EXPECT_EQ(Read("r", {Column("c", Between(4, 2))}), "");
  EXPECT_EQ(Read("r", {Columns(Family::kData, Between(4, 2))}), "");
  EXPECT_EQ(Read("r", {Columns(Family::kData, Between(0, 0))}), "");
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::From(Timestamp::Infinity()))}), "");
}

TEST_P(StoreTest, NewestSelectsThatNumberOfVersionsPerColumn) {
  for (uint64_t ts = 1; ts <= 5; ++ts) Apply("r", {Set("a", ts, ""), Set("b", ts * 10, "")});
  EXPECT_EQ(Read("r", {Column("a", {}, 1)}), "data:a@5=");
  EXPECT_EQ(Read("r", {Column("a", Between(0, 4), 2)}), "data:a@3= data:a@2=");
  EXPECT_EQ(Read("r", {Column("a", {}, 100)}), "data:a@5= data:a@4= data:a@3= data:a@2= data:a@1=");
  EXPECT_EQ(Read("r", {Columns(Family::kData, {}, 2)}), "data:a@5= data:a@4= data:b@50= data:b@40=");
  EXPECT_EQ(Read("r", {Columns(Family::kData, Between(2, 31), 1)}), "data:a@5= data:b@30=");
}

TEST_P(StoreTest, CellsComeInTheOrderOfTheSelectors) {
  Apply("r", {Set("a", 1, ""), Set("b", 1, ""), Set("a", 2, "", Family::kLock), Set("z", 3, "", Family::kWrite)});
  EXPECT_EQ(Read("r", {Columns(Family::kWrite), Column("b"), Columns(Family::kLock), Column("a")}),
            "write:z@3= data:b@1= lock:a@2= data:a@1=");
}

TEST_P(StoreTest, ACellThatTwoSelectorsSelectComesTwice) {
  Apply("r", {Set("a", 1, "x"), Set("a", 2, "y"), Set("b", 1, "z")});
  EXPECT_EQ(Read("r", {Column("a", {}, 1), Columns(Family::kData), Column("a", Between(1, 2))}),
            "data:a@2=y data:a@2=y data:a@1=x data:b@1=z data:a@1=x");
  EXPECT_EQ(Read("r", {Column("b"), Column("b")}), "data:b@1=z data:b@1=z");
}

TEST_P(StoreTest, ColumnsOrderAsUnsignedBytesAPrefixFirst) {
  std::vector<std::string> columns = NastyStrings();
  columns.insert(columns.begin(), "");
  std::vector<Mutation> sets;
  for (auto it = columns.rbegin(); it != columns.rend(); ++it) sets.push_back(Set(*it, 1, *it));
  Apply("r", sets);
  std::vector<Cell> expected;
  for (const std::string& column : columns) expected.push_back({Family::kData, column, Timestamp(1), column});
  EXPECT_EQ(Read("r", {Columns(Family::kData)}), ToText(expected));
  for (const Cell& cell : expected) EXPECT_EQ(Read("r", {Column(cell.column)}), ToText(cell));
}

TEST_P(StoreTest, AColumnSelectorTakesExactlyItsColumn) {
  Apply("r", {Set("ab", 1, "")});
  EXPECT_EQ(Read("r", {Column("a"), Column("abc"), Column("")}), "");
  EXPECT_EQ(Read("r", {Column("ab")}), "data:ab@1=");
}

TEST_P(StoreTest, FamiliesAreSeparate) {
  Apply("r", {Set("c", 1, "d"), Set("c", 1, "l", Family::kLock), Set("c", 1, "w", Family::kWrite),
              Set("c", 1, "n", Family::kNotify)});
  EXPECT_EQ(Read("r"), "data:c@1=d lock:c@1=l write:c@1=w notify:c@1=n");
  Apply("r", {EraseAt("c", 1, Family::kLock)});
  EXPECT_EQ(Read("r"), "data:c@1=d write:c@1=w notify:c@1=n");
}

TEST_P(StoreTest, AnEmptyValueIsAValue) {
  Apply("r", {Set("", 1, "")});
  EXPECT_EQ(Read("r"), "data:@1=");
  EXPECT_EQ(Scan(), "r{data:@1=}");
  Apply("r", {Set("seen", 1, "")}, All({At("", 1)}));
}

TEST_P(StoreTest, ValuesKeepAllTheirBytes) {
  std::string value;
  for (int i = 0; i < 256; ++i) value += static_cast<char>(i);
  Apply("r", {Set("c", 1, value)});
  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "r", {Column("c")}}});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->at(0).cells.at(0).value, value);
}

TEST_P(StoreTest, RowsWithNastyKeysAreSeparateAndInOrder) {
  const std::vector<std::string> keys = NastyStrings();
  ApplyRows({keys.rbegin(), keys.rend()});
  EXPECT_EQ(ScanKeys(), keys);
  for (const std::string& key : keys) {
    EXPECT_EQ(Read(key), ToText(Cell{Family::kData, "c", Timestamp(1), key}));
  }
}

TEST_P(StoreTest, RowAndColumnAreKeptApart) {
  const std::string zero(1, '\0');
  Apply("a", {Set("bc", 1, "1"), Set(zero, 1, "2")});
  Apply("ab", {Set("c", 1, "3"), Set("", 1, "4")});
  Apply("a" + zero, {Set("", 1, "5")});
  EXPECT_EQ(Read("a"), "data:\\x00@1=2 data:bc@1=1");
  EXPECT_EQ(Read("ab"), "data:@1=4 data:c@1=3");
  EXPECT_EQ(Read("a" + zero), "data:@1=5");
  EXPECT_THAT(ScanKeys(), ::testing::ElementsAre("a", "a" + zero, "ab"));
}

TEST_P(StoreTest, ColumnsThatLookLikeTimestampsAreKeptApart) {
  // Columns of eight bytes and more beside the same bytes as a timestamp, in case a key joins the two.
  const std::string zeros(8, '\0'), ones(8, '\xff');
  Apply("r", {Set("", 1, "a"), Set(zeros, 1, "b"), Set(ones, 1, "c"), Set(zeros + zeros, 1, "d"),
              Set("", LastTimestamp(), "e"), Set("", 0, "f")});
  EXPECT_EQ(Read("r", {Column("", Between(0, LastTimestamp()))}), "data:@1=a data:@0=f");
  EXPECT_EQ(Read("r", {Column(zeros, {}, 1)}), ToText(Cell{Family::kData, zeros, Timestamp(1), "b"}));
  EXPECT_EQ(Read("r", {Column(ones)}), ToText(Cell{Family::kData, ones, Timestamp(1), "c"}));
}

TEST_P(StoreTest, ABatchOfReadsIsAnsweredInItsOrder) {
  ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
  Apply("a", {Set("c", 1, "1")});
  Apply("b", {Set("c", 1, "2"), Set("d", 1, "3")});
  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "b", {Column("d")}},
                                                        {"t", "missing", Everything()},
                                                        {"t", "a", Everything()},
                                                        {"u", "a", Everything()},
                                                        {"t", "b", {Column("c")}},
                                                        {"t", "a", Everything()}});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(ToText(*rows), "b{data:d@1=3} missing{} a{data:c@1=1} a{} b{data:c@1=2} a{data:c@1=1}");
}

TEST_P(StoreTest, AReadOfAnUnknownTableFailsItsBatch) {
  EXPECT_THAT(store_->Read({{"nope", "r", {}}}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Read({{"t", "r", {}}, {"nope", "r", {}}}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Read({{"not a name!", "r", {}}}), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StoreTest, AMalformedReadFailsItsBatch) {
  const Selector no_family = {static_cast<Family>(kFamilyCount), std::nullopt, {}, Selector::kAllVersions};
  EXPECT_THAT(store_->Read({{"t", "", {}}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Read({{"t", "r", {}}, {"t", "", {}}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Read({{"t", "r", {no_family}}}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StoreTest, AMillionVersionsAwayFromTheNewestIsStillFound) {
  Apply("r", {Set("c", 1, "old"), Set("c", 1'000'000, "new")});
  EXPECT_EQ(Read("r", {Column("c", TimestampRange::UpTo(Timestamp(999'999)), 1)}), "data:c@1=old");
}

TEST_P(StoreTest, ManyVersionsOfOneCellAreReadAndScannedFromTheMiddle) {
  constexpr uint64_t kVersions = 2000;
  std::vector<Mutation> sets;
  for (uint64_t ts = 1; ts <= kVersions; ++ts) sets.push_back(Set("many", ts, "v" + std::to_string(ts)));
  sets.push_back(Set("next", 1, "n"));
  ApplyRows({"a", "c"});
  Apply("b", sets);

  EXPECT_EQ(Read("b", {Column("many", {}, 1)}), "data:many@2000=v2000");
  EXPECT_EQ(Read("b", {Column("many", TimestampRange::UpTo(Timestamp(1000)), 3)}),
            "data:many@1000=v1000 data:many@999=v999 data:many@998=v998");
  EXPECT_EQ(Read("b", {Columns(Family::kData, {}, 1)}), "data:many@2000=v2000 data:next@1=n");
  EXPECT_EQ(Scan(RowRange::All(), {Columns(Family::kData, {}, 1)}),
            "a{data:c@1=a} b{data:many@2000=v2000 data:next@1=n} c{data:c@1=c}");
  EXPECT_EQ(Scan(RowRange::All(), {Columns(Family::kData, TimestampRange::UpTo(Timestamp(1000)), 3)}),
            "a{data:c@1=a} b{data:many@1000=v1000 data:many@999=v999 data:many@998=v998 data:next@1=n} "
            "c{data:c@1=c}");

  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "b", {Column("many")}}});
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->at(0).cells.size(), kVersions);
  for (uint64_t i = 0; i < kVersions; ++i) {
    ASSERT_EQ(rows->at(0).cells[i].timestamp, Timestamp(kVersions - i));
  }

  Apply("b", {Erase("many", Between(2, kVersions))});
  EXPECT_EQ(Read("b"), "data:many@2000=v2000 data:many@1=v1 data:next@1=n");
}

}  // namespace
}  // namespace percolator
