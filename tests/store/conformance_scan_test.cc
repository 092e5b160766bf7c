// SPDX-License-Identifier: Apache-2.0

// Conformance: Scan and SampleRowKeys.

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/store/conformance.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// "row00000", "row00001", ...
std::vector<std::string> NumberedRows(int count) {
  std::vector<std::string> rows;
  for (int i = 0; i < count; ++i) rows.push_back(absl::StrFormat("row%05d", i));
  return rows;
}

std::vector<std::string> KeysOf(const std::vector<ScanPage>& pages) {
  std::vector<std::string> keys;
  for (const ScanPage& page : pages) {
    for (const Row& row : page.rows) keys.push_back(row.key);
  }
  return keys;
}

// The bytes of values in a page without its last row, which may exceed a limit.
size_t ValueBytesBeforeLastRow(const ScanPage& page) {
  size_t bytes = 0;
  for (size_t i = 0; i + 1 < page.rows.size(); ++i) {
    for (const Cell& cell : page.rows[i].cells) bytes += cell.value.size();
  }
  return bytes;
}

TEST_P(StoreTest, ScanOfAnEmptyTableIsOneEmptyPage) {
  absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::All(), Everything()));
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->rows, IsEmpty());
  EXPECT_FALSE(page->resume.has_value());
}

TEST_P(StoreTest, ScanReturnsRowsInKeyOrderWithTheirCells) {
  Apply("b", {Set("x", 1, "1"), Set("x", 2, "2"), Set("y", 1, "3"), Set("l", 5, "4", Family::kLock)});
  Apply("a", {Set("z", 9, "5", Family::kNotify)});
  Apply("c", {Set("", 1, "6", Family::kWrite)});
  EXPECT_EQ(Scan(), "a{notify:z@9=5} b{data:x@2=2 data:x@1=1 data:y@1=3 lock:l@5=4} c{write:@1=6}");
}

TEST_P(StoreTest, ScanSelectsAsReadDoes) {
  Apply("a", {Set("x", 1, "1"), Set("x", 2, "2"), Set("y", 3, "3"), Set("x", 2, "4", Family::kWrite)});
  Apply("b", {Set("x", 1, "5"), Set("l", 1, "6", Family::kLock)});
  Apply("c", {Set("y", 1, "7", Family::kWrite)});
  const std::vector<std::vector<Selector>> selections = {
      {Column("x", {}, 1)},
      {Columns(Family::kWrite), Column("x", Between(0, 2)), Columns(Family::kLock), Column("x")},
      {Columns(Family::kData, {}, 1)},
      {Column("y"), Columns(Family::kData), Column("y")},
      {Columns(Family::kNotify)},
      {Columns(Family::kData, Between(2, 2))},
      {},
  };
  for (const std::vector<Selector>& selectors : selections) {
    std::vector<Row> expected;
    for (const char* key : {"a", "b", "c"}) {
      absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", key, selectors}});
      ASSERT_THAT(rows, IsOk());
      if (!rows->at(0).cells.empty()) expected.push_back(rows->at(0));
    }
    EXPECT_EQ(Scan(RowRange::All(), selectors), ToText(expected));
  }
  EXPECT_EQ(Scan(RowRange::All(), selections[1]),
            "a{write:x@2=4 data:x@1=1 data:x@2=2 data:x@1=1} b{data:x@1=5 lock:l@1=6 data:x@1=5} c{write:y@1=7}");
}

TEST_P(StoreTest, RowsWithoutSelectedCellsAreSkippedAndDoNotCount) {
  const std::vector<std::string> rows = NumberedRows(300);
  ApplyRows(rows);
  std::vector<std::string> marked;
  for (size_t i = 7; i < rows.size(); i += 50) {
    Apply(rows[i], {Set("n", 1, "", Family::kNotify)});
    marked.push_back(rows[i]);
  }
  EXPECT_THAT(KeysOf(ScanPages(ScanOf(RowRange::All(), {Columns(Family::kNotify)}))), ElementsAreArray(marked));
  EXPECT_THAT(KeysOf(ScanPages(ScanOf(RowRange::All(), {Columns(Family::kNotify)}, 2))), ElementsAreArray(marked));
  absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::All(), {Columns(Family::kNotify)}, 3));
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->rows.size(), 3) << "skipped rows count against the row limit";
}

TEST_P(StoreTest, RowRangesIncludeTheirStartAndExcludeTheirLimit) {
  const std::string zero(1, '\0');
  const std::vector<std::string> keys = {"a", "a" + zero, "ab", "b", "b\xff", "c", "\xff", "\xff\xff"};
  ApplyRows(keys);
  EXPECT_THAT(ScanKeys({"a", "b"}), ElementsAre("a", "a" + zero, "ab"));
  EXPECT_THAT(ScanKeys({"a" + zero, "ab"}), ElementsAre("a" + zero));
  EXPECT_THAT(ScanKeys({"aa", "b" + zero}), ElementsAre("ab", "b"));
  EXPECT_THAT(ScanKeys({"", "a"}), IsEmpty());
  EXPECT_THAT(ScanKeys({"", "a" + zero}), ElementsAre("a"));
  EXPECT_THAT(ScanKeys({"", ""}), IsEmpty());
  EXPECT_THAT(ScanKeys({"b", "b"}), IsEmpty());
  EXPECT_THAT(ScanKeys({"c", "a"}), IsEmpty());
  EXPECT_THAT(ScanKeys({"\xff", std::nullopt}), ElementsAre("\xff", "\xff\xff"));
  EXPECT_THAT(ScanKeys({"\xff\xff\xff", std::nullopt}), IsEmpty());
  EXPECT_THAT(ScanKeys(RowRange::Single("a")), ElementsAre("a"));
  EXPECT_THAT(ScanKeys(RowRange::Single("aa")), IsEmpty());
  EXPECT_THAT(ScanKeys(RowRange::Prefix("a")), ElementsAre("a", "a" + zero, "ab"));
  EXPECT_THAT(ScanKeys(RowRange::Prefix("b\xff")), ElementsAre("b\xff"));
  EXPECT_THAT(ScanKeys(RowRange::Prefix("\xff")), ElementsAre("\xff", "\xff\xff"));
  EXPECT_THAT(ScanKeys(RowRange::All().After("b")), ElementsAre("b\xff", "c", "\xff", "\xff\xff"));
  EXPECT_EQ(ScanKeys(), keys);
}

TEST_P(StoreTest, EveryRangeOverNastyKeysHoldsItsRows) {
  const std::vector<std::string> keys = NastyStrings();
  ApplyRows(keys);
  for (const std::string& start : keys) {
    for (const std::string& limit : keys) {
      std::vector<std::string> expected;
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(expected),
                   [&](const std::string& key) { return start <= key && key < limit; });
      ASSERT_EQ(ScanKeys({start, limit}), expected);
    }
  }
}

TEST_P(StoreTest, ScanStaysInItsTable) {
  for (const char* table : {"s", "t-", "t0", "tt", "u"}) {
    ASSERT_THAT(store_->CreateTable({table, ""}), IsOk());
    const auto results = store_->Mutate({{table, "r", {}, {Set("c", 1, table)}}});
    ASSERT_THAT(results.at(0), IsOk());
  }
  EXPECT_EQ(Scan(), "");
  Apply("q", {Set("c", 1, "t")});
  EXPECT_EQ(Scan(), "q{data:c@1=t}");
}

TEST_P(StoreTest, PagesOfAnyRowLimitJoinToTheWhole) {
  const std::vector<std::string> rows = NumberedRows(47);
  ApplyRows(rows);
  for (size_t limit : {1, 2, 3, 23, 46, 47, 48, 1000}) {
    const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), Everything(), limit));
    EXPECT_EQ(KeysOf(pages), rows) << limit;
    EXPECT_EQ(pages[0].rows.size(), std::min<size_t>(limit, 47)) << limit;
  }
}

TEST_P(StoreTest, PagesKeepTheLimitOfTheRange) {
  const std::vector<std::string> rows = NumberedRows(20);
  ApplyRows(rows);
  const std::vector<ScanPage> pages = ScanPages(ScanOf({rows[3], rows[11]}, Everything(), 3));
  EXPECT_THAT(KeysOf(pages), ElementsAreArray(rows.begin() + 3, rows.begin() + 11));
}

TEST_P(StoreTest, AScanMayBeResumedWhereRowsHaveComeAndGone) {
  const std::vector<std::string> rows = NumberedRows(6);
  ApplyRows(rows);
  absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::All(), Everything(), 2));
  ASSERT_THAT(page, IsOk());
  ASSERT_TRUE(page->resume.has_value());
  Apply(rows[2], {Erase("c", TimestampRange::All())});
  Apply(rows[0] + "x", {Set("c", 1, "")});
  Apply(rows[4] + "x", {Set("c", 1, "")});
  EXPECT_THAT(ScanKeys({*page->resume, std::nullopt}), ElementsAre(rows[3], rows[4], rows[4] + "x", rows[5]));
}

TEST_P(StoreTest, ManyRowsAreScannedCompletely) {
  const std::vector<std::string> rows = NumberedRows(5000);
  for (size_t i = 0; i < rows.size(); i += 1000) {
    ApplyRows({rows.begin() + i, rows.begin() + i + 1000});
  }
  EXPECT_EQ(ScanKeys(), rows);
  EXPECT_EQ(KeysOf(ScanPages(ScanOf(RowRange::All(), {Column("c", {}, 1)}, 333))), rows);
}

TEST_P(StoreTest, BigRowsMakeShortPages) {
  const size_t value_bytes = StoreLimits().max_scan_bytes / 4;
  const std::vector<std::string> rows = NumberedRows(10);
  for (const std::string& row : rows) Apply(row, {Set("c", 1, std::string(value_bytes, 'v'))});
  const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), Everything()));
  EXPECT_EQ(KeysOf(pages), rows);
  for (const ScanPage& page : pages) {
    EXPECT_LT(ValueBytesBeforeLastRow(page), StoreLimits().max_scan_bytes);
  }
}

TEST_P(StoreTest, ScanOfAnUnknownTableIsNotFound) {
  ScanRequest request = ScanOf(RowRange::All(), Everything());
  request.table = "nope";
  EXPECT_THAT(store_->Scan(request), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StoreTest, ScanWithARowLimitOfZeroIsRefused) {
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), Everything(), 0)), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StoreLimitsTest, APageEndsAtTheFirstRowThatReachesScanBytes) {
  StoreLimits limits;
  limits.max_scan_bytes = 10'000;
  Open(limits);
  const std::vector<std::string> rows = NumberedRows(100);
  for (const std::string& row : rows) Apply(row, {Set("c", 1, std::string(1000, 'v'))});
  const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), {Column("c")}));
  EXPECT_EQ(KeysOf(pages), rows);
  for (const ScanPage& page : pages) {
    EXPECT_LT(ValueBytesBeforeLastRow(page), limits.max_scan_bytes);
    // Keys, columns and some overhead may also count, but not as much as the values.
    if (page.resume.has_value()) {
      EXPECT_GE(page.rows.size(), 5);
    }
  }
}

TEST_P(StoreLimitsTest, ARowLargerThanScanBytesIsReturnedWhole) {
  StoreLimits limits;
  limits.max_scan_bytes = 100;
  Open(limits);
  for (const char* row : {"a", "b"}) {
    Apply(row, {Set("c", 1, std::string(500, 'v')), Set("d", 1, std::string(500, 'v'))});
  }
  const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), Everything()));
  EXPECT_THAT(KeysOf(pages), ElementsAre("a", "b"));
  for (const ScanPage& page : pages) {
    EXPECT_LE(page.rows.size(), 1);
    for (const Row& row : page.rows) EXPECT_EQ(row.cells.size(), 2);
  }
}

TEST_P(StoreLimitsTest, APageEndsAfterBoundedWorkEvenIfNothingMatches) {
  StoreLimits limits;
  limits.max_scan_work = 50;
  Open(limits);
  const std::vector<std::string> rows = NumberedRows(1000);
  ApplyRows(rows);
  Apply(rows.back(), {Set("late", 1, "")});
  const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), {Column("late")}));
  EXPECT_THAT(KeysOf(pages), ElementsAre(rows.back()));
  EXPECT_GT(pages.size(), 1) << "a thousand rows in one page that may look at fifty versions";
  EXPECT_EQ(KeysOf(ScanPages(ScanOf(RowRange::All(), Everything()))), rows);
}

TEST_P(StoreLimitsTest, ARowWithMoreVersionsThanScanWorkIsReturnedWhole) {
  StoreLimits limits;
  limits.max_scan_work = 10;
  Open(limits);
  std::vector<Mutation> sets;
  for (uint64_t ts = 1; ts <= 100; ++ts) sets.push_back(Set("c", ts, ""));
  Apply("a", sets);
  Apply("b", sets);
  const std::vector<ScanPage> pages = ScanPages(ScanOf(RowRange::All(), Everything()));
  EXPECT_THAT(KeysOf(pages), ElementsAre("a", "b"));
  for (const ScanPage& page : pages) {
    for (const Row& row : page.rows) EXPECT_EQ(row.cells.size(), 100);
  }
}

TEST_P(StoreTest, SampleRowKeysAreAscendingAndDistinct) {
  const std::vector<std::string> rows = NumberedRows(2000);
  for (size_t i = 0; i < rows.size(); i += 500) ApplyRows({rows.begin() + i, rows.begin() + i + 500});
  absl::StatusOr<std::vector<std::string>> keys = store_->SampleRowKeys("t");
  ASSERT_THAT(keys, IsOk());
  EXPECT_TRUE(std::is_sorted(keys->begin(), keys->end()));
  EXPECT_EQ(std::set<std::string>(keys->begin(), keys->end()).size(), keys->size());
  for (const std::string& key : *keys) {
    EXPECT_FALSE(key.empty());
    EXPECT_LE(key, rows.back());
  }
}

TEST_P(StoreTest, SampleRowKeysOfAnEmptyTableSucceeds) {
  EXPECT_THAT(store_->SampleRowKeys("t"), IsOk());
  EXPECT_THAT(store_->SampleRowKeys("nope"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace percolator
