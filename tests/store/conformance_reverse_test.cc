// SPDX-License-Identifier: Apache-2.0

// Conformance: Scan with ScanRequest::reverse.

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/store/conformance.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr int kMaxReversePages = 100'000;

// "r0000", "r0001", ...
std::vector<std::string> CountedRows(int count) {
  std::vector<std::string> rows;
  for (int i = 0; i < count; ++i) rows.push_back(absl::StrFormat("r%04d", i));
  return rows;
}

std::vector<std::string> Reversed(std::vector<std::string> rows) {
  std::reverse(rows.begin(), rows.end());
  return rows;
}

std::vector<Row> RowsOf(const std::vector<ScanPage>& pages) {
  std::vector<Row> rows;
  for (const ScanPage& page : pages) rows.insert(rows.end(), page.rows.begin(), page.rows.end());
  return rows;
}

std::vector<std::string> RowKeysOf(const std::vector<ScanPage>& pages) {
  std::vector<std::string> keys;
  for (const Row& row : RowsOf(pages)) keys.push_back(row.key);
  return keys;
}

ScanRequest ReverseScanOf(RowRange rows, std::vector<Selector> selectors, size_t row_limit = 1000) {
  ScanRequest request = ScanOf(std::move(rows), std::move(selectors), row_limit);
  request.reverse = true;
  return request;
}

// With reduced limits too, on the stores that accept them.
class ReverseScanTest : public StoreTest {
 protected:
  // Skips the test if the server of the store is too old.
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ApplyRows({"probe1", "probe2"});
    const absl::StatusOr<ScanPage> page = store_->Scan(ReverseScanOf(RowRange::All(), Everything(), 1));
    if (absl::IsUnimplemented(page.status())) GTEST_SKIP() << page.status();
    ASSERT_THAT(page, IsOk());
    for (const char* row : {"probe1", "probe2"}) Apply(row, {Erase("c", TimestampRange::All())});
  }

  // All pages. Checks that each is well-formed: rows descending, in the range, not empty, and above the next page.
  std::vector<ScanPage> ReversePages(ScanRequest request) {
    std::vector<ScanPage> pages;
    while (pages.size() < kMaxReversePages) {
      absl::StatusOr<ScanPage> page = store_->Scan(request);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return pages;
      EXPECT_LE(page->rows.size(), request.row_limit);
      std::optional<std::string> above = request.rows.limit;
      for (const Row& row : page->rows) {
        EXPECT_TRUE(!above.has_value() || row.key < *above) << ToText(row);
        EXPECT_GE(row.key, request.rows.start);
        EXPECT_FALSE(row.cells.empty()) << ToText(row);
        above = row.key;
      }
      pages.push_back(*std::move(page));
      const std::optional<std::string>& resume = pages.back().resume;
      if (!resume.has_value()) return pages;
      EXPECT_TRUE(!above.has_value() || *resume <= *above) << "a row would come twice";
      EXPECT_TRUE(!request.rows.limit.has_value() || *resume < *request.rows.limit) << "the scan makes no progress";
      EXPECT_GE(*resume, request.rows.start);
      request.ContinueAt(*resume);
    }
    ADD_FAILURE() << "the scan does not end";
    return pages;
  }

  std::string ReverseScan(const ScanRequest& request) { return ToText(RowsOf(ReversePages(request))); }

  std::vector<std::string> ReverseKeys(RowRange rows = RowRange::All()) {
    return RowKeysOf(ReversePages(ReverseScanOf(std::move(rows), Everything())));
  }

  // The rows of a forward scan, reversed, must equal those of the reverse one.
  void ExpectReverseOfForward(ScanRequest request) {
    request.reverse = false;
    std::vector<Row> expected = RowsOf(ScanPages(request));
    std::reverse(expected.begin(), expected.end());
    request.reverse = true;
    ASSERT_EQ(ReverseScan(request), ToText(expected)) << ToText(request);
  }

  void CompareRandomScans(uint64_t seed, int rounds);
};

class ReverseScanLimitsTest : public ReverseScanTest {};

INSTANTIATE_TEST_SUITE_P(Stores, ReverseScanTest, ::testing::ValuesIn(StoresToTest()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, ReverseScanLimitsTest, ::testing::ValuesIn(StoresThatTakeLimits()), NameOfStore);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReverseScanLimitsTest);

TEST_P(ReverseScanTest, AnEmptyTableIsOneEmptyPage) {
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), Everything()));
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_THAT(pages[0].rows, IsEmpty());
}

TEST_P(ReverseScanTest, ASingleRow) {
  Apply("a", {Set("c", 1, "v")});
  EXPECT_EQ(ReverseScan(ReverseScanOf(RowRange::All(), Everything(), 1)), "a{data:c@1=v}");
}

TEST_P(ReverseScanTest, RowsDescendAndTheirCellsDoNot) {
  Apply("b", {Set("x", 1, "1"), Set("x", 2, "2"), Set("y", 1, "3"), Set("l", 5, "4", Family::kLock)});
  Apply("a", {Set("z", 9, "5", Family::kNotify)});
  Apply("c", {Set("", 1, "6", Family::kWrite)});
  EXPECT_EQ(ReverseScan(ReverseScanOf(RowRange::All(), Everything())),
            "c{write:@1=6} b{data:x@2=2 data:x@1=1 data:y@1=3 lock:l@5=4} a{notify:z@9=5}");
}

TEST_P(ReverseScanTest, SelectsAsAForwardScanDoes) {
  Apply("a", {Set("x", 1, "1"), Set("x", 2, "2"), Set("y", 3, "3"), Set("x", 2, "4", Family::kWrite)});
  Apply("b", {Set("x", 1, "5"), Set("l", 1, "6", Family::kLock)});
  Apply("c", {Set("y", 1, "7", Family::kWrite)});
  Apply("d", {Set("w", 1, "8"), Set("x", 3, "9"), Set("y", 1, "10")});
  const std::vector<std::vector<Selector>> selections = {
      {Column("x", {}, 1)},
      {Columns(Family::kWrite), Column("x", Between(0, 2)), Columns(Family::kLock), Column("x")},
      {Columns(Family::kData, {}, 1)},
      {Column("y"), Columns(Family::kData), Column("y")},
      {Columns(Family::kNotify)},
      {Columns(Family::kData, Between(2, 2))},
      {Column("w"), Column("nothing")},
      {},
  };
  for (const std::vector<Selector>& selectors : selections) {
    ExpectReverseOfForward(ScanOf(RowRange::All(), selectors));
  }
  EXPECT_EQ(ReverseScan(ReverseScanOf({"a", "d"}, selections[1])),
            "c{write:y@1=7} b{data:x@1=5 lock:l@1=6 data:x@1=5} a{write:x@2=4 data:x@1=1 data:x@2=2 data:x@1=1}");
}

TEST_P(ReverseScanTest, RowsWithManyVersionsAndColumns) {
  for (const char* row : {"a", "b", "c"}) {
    std::vector<Mutation> sets;
    for (const char* column : {"before", "m", "past"}) {
      for (uint64_t ts = 1; ts <= 40; ++ts) sets.push_back(Set(column, ts, absl::StrCat(row, ts)));
    }
    Apply(row, sets);
  }
  for (const uint32_t newest : {0, 1, 3}) {
    for (const TimestampRange range : {TimestampRange::All(), Between(5, 7), Between(30, 100), Between(50, 60)}) {
      ExpectReverseOfForward(ScanOf(RowRange::All(), {Column("m", range, newest)}));
      ExpectReverseOfForward(ScanOf(RowRange::All(), {Columns(Family::kData, range, newest)}));
    }
  }
}

TEST_P(ReverseScanTest, RangesIncludeTheirStartAndExcludeTheirLimit) {
  const std::string zero(1, '\0');
  const std::vector<std::string> keys = {"a", "a" + zero, "ab", "b", "b\xff", "c", "\xff", "\xff\xff"};
  ApplyRows(keys);
  EXPECT_THAT(ReverseKeys({"a", "b"}), ElementsAre("ab", "a" + zero, "a"));
  EXPECT_THAT(ReverseKeys({"a" + zero, "ab"}), ElementsAre("a" + zero));
  EXPECT_THAT(ReverseKeys({"aa", "b" + zero}), ElementsAre("b", "ab"));
  EXPECT_THAT(ReverseKeys({"", "a"}), IsEmpty());
  EXPECT_THAT(ReverseKeys({"", "a" + zero}), ElementsAre("a"));
  EXPECT_THAT(ReverseKeys({"", ""}), IsEmpty());
  EXPECT_THAT(ReverseKeys({"b", "b"}), IsEmpty());
  EXPECT_THAT(ReverseKeys({"c", "a"}), IsEmpty());
  EXPECT_THAT(ReverseKeys({"\xff", std::nullopt}), ElementsAre("\xff\xff", "\xff"));
  EXPECT_THAT(ReverseKeys({"\xff\xff\xff", std::nullopt}), IsEmpty());
  EXPECT_THAT(ReverseKeys(RowRange::Single("a")), ElementsAre("a"));
  EXPECT_THAT(ReverseKeys(RowRange::Single("aa")), IsEmpty());
  EXPECT_THAT(ReverseKeys(RowRange::Prefix("a")), ElementsAre("ab", "a" + zero, "a"));
  EXPECT_THAT(ReverseKeys(RowRange::Prefix("\xff")), ElementsAre("\xff\xff", "\xff"));
  EXPECT_THAT(ReverseKeys(RowRange::All().Before("ab")), ElementsAre("a" + zero, "a"));
  EXPECT_THAT(ReverseKeys(RowRange::All().After("b").Before("c")), ElementsAre("b\xff"));
  EXPECT_EQ(ReverseKeys(), Reversed(keys));
}

TEST_P(ReverseScanTest, EveryRangeOverNastyKeysHoldsItsRows) {
  const std::vector<std::string> keys = NastyStrings();
  ApplyRows(keys);
  for (const std::string& start : keys) {
    for (const std::string& limit : keys) {
      std::vector<std::string> expected;
      std::copy_if(keys.rbegin(), keys.rend(), std::back_inserter(expected),
                   [&](const std::string& key) { return start <= key && key < limit; });
      ASSERT_EQ(ReverseKeys({start, limit}), expected);
    }
  }
}

TEST_P(ReverseScanTest, StaysInItsTable) {
  for (const char* table : {"s", "t-", "t0", "tt", "u"}) {
    ASSERT_THAT(store_->CreateTable({table, ""}), IsOk());
    const auto results = store_->Mutate({{table, "r", {}, {Set("c", 1, table)}}});
    ASSERT_THAT(results.at(0), IsOk());
  }
  EXPECT_THAT(ReverseKeys(), IsEmpty());
  Apply("q", {Set("c", 1, "t")});
  EXPECT_EQ(ReverseScan(ReverseScanOf(RowRange::All(), Everything())), "q{data:c@1=t}");
}

TEST_P(ReverseScanTest, PagesOfAnyRowLimitJoinToTheWhole) {
  const std::vector<std::string> rows = CountedRows(47);
  ApplyRows(rows);
  for (size_t limit : {1, 2, 3, 23, 46, 47, 48, 1000}) {
    const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), Everything(), limit));
    EXPECT_EQ(RowKeysOf(pages), Reversed(rows)) << limit;
    EXPECT_EQ(pages[0].rows.size(), std::min<size_t>(limit, 47)) << limit;
  }
}

TEST_P(ReverseScanTest, PagesKeepTheStartOfTheRange) {
  const std::vector<std::string> rows = CountedRows(20);
  ApplyRows(rows);
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf({rows[3], rows[11]}, Everything(), 3));
  EXPECT_THAT(RowKeysOf(pages), ElementsAreArray(Reversed({rows.begin() + 3, rows.begin() + 11})));
}

TEST_P(ReverseScanTest, RowsWithoutSelectedCellsAreSkippedAndDoNotCount) {
  const std::vector<std::string> rows = CountedRows(300);
  ApplyRows(rows);
  std::vector<std::string> marked;
  for (size_t i = 7; i < rows.size(); i += 50) {
    Apply(rows[i], {Set("n", 1, "", Family::kNotify), Set("seldom", 1, "")});
    marked.push_back(rows[i]);
  }
  for (const Selector& selector : {Columns(Family::kNotify), Column("seldom")}) {
    for (size_t limit : {1, 2, 1000}) {
      EXPECT_EQ(RowKeysOf(ReversePages(ReverseScanOf(RowRange::All(), {selector}, limit))), Reversed(marked)) << limit;
    }
    const absl::StatusOr<ScanPage> page = store_->Scan(ReverseScanOf(RowRange::All(), {selector}, 3));
    ASSERT_THAT(page, IsOk());
    EXPECT_EQ(page->rows.size(), 3) << "skipped rows count against the row limit";
  }
}

TEST_P(ReverseScanTest, ErasedRowsAreAbsent) {
  const std::vector<std::string> rows = CountedRows(60);
  ApplyRows(rows);
  std::vector<std::string> left;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 3 != 0) Apply(rows[i], {Erase("c", TimestampRange::All())});
    if (i % 6 == 1) Apply(rows[i], {Set("c", 2, "again")});
    if (i % 3 == 0 || i % 6 == 1) left.push_back(rows[i]);
  }
  EXPECT_EQ(ReverseKeys(), Reversed(left));
  EXPECT_EQ(RowKeysOf(ReversePages(ReverseScanOf(RowRange::All(), {Column("c", {}, 1)}, 4))), Reversed(left));
  for (const std::string& row : left) Apply(row, {Erase("c", TimestampRange::All())});
  EXPECT_THAT(ReverseKeys(), IsEmpty());
}

TEST_P(ReverseScanTest, MayBeContinuedWhereRowsHaveComeAndGone) {
  const std::vector<std::string> rows = CountedRows(6);
  ApplyRows(rows);
  ScanRequest request = ReverseScanOf(RowRange::All(), Everything(), 2);
  const absl::StatusOr<ScanPage> page = store_->Scan(request);
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(RowKeysOf({*page}), ElementsAre(rows[5], rows[4]));
  ASSERT_TRUE(page->resume.has_value());
  Apply(rows[3], {Erase("c", TimestampRange::All())});
  Apply(rows[5] + "x", {Set("c", 1, "")});
  Apply(rows[1] + "x", {Set("c", 1, "")});
  request.ContinueAt(*page->resume);
  EXPECT_THAT(RowKeysOf(ReversePages(request)), ElementsAre(rows[2], rows[1] + "x", rows[1], rows[0]));
}

TEST_P(ReverseScanTest, ManyRowsAreScannedCompletely) {
  const std::vector<std::string> rows = CountedRows(3000);
  for (size_t i = 0; i < rows.size(); i += 1000) ApplyRows({rows.begin() + i, rows.begin() + i + 1000});
  EXPECT_EQ(ReverseKeys(), Reversed(rows));
  EXPECT_EQ(RowKeysOf(ReversePages(ReverseScanOf(RowRange::All(), {Column("c", {}, 1)}, 333))), Reversed(rows));
}

TEST_P(ReverseScanTest, BigRowsMakeShortPages) {
  const size_t value_bytes = StoreLimits().max_scan_bytes / 4;
  const std::vector<std::string> rows = CountedRows(10);
  for (const std::string& row : rows) Apply(row, {Set("c", 1, std::string(value_bytes, 'v'))});
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), Everything()));
  EXPECT_EQ(RowKeysOf(pages), Reversed(rows));
  for (const ScanPage& page : pages) EXPECT_LE(page.rows.size(), 4u);
}

TEST_P(ReverseScanTest, ARequestIsRefusedAsAForwardOneIs) {
  ScanRequest request = ReverseScanOf(RowRange::All(), Everything());
  request.table = "nope";
  EXPECT_THAT(store_->Scan(request), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Scan(ReverseScanOf(RowRange::All(), Everything(), 0)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Draws tables and scans from a space so small that they collide, full of bytes where encodings go wrong.
void ReverseScanTest::CompareRandomScans(uint64_t seed, int rounds) {
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t n) { return random() % n; };
  const std::vector<std::string> keys = NastyStrings();
  const std::vector<std::string> columns = {"", std::string(1, '\0'), "c", "\xff"};
  const auto key = [&] { return keys[below(keys.size())]; };
  const auto column = [&] { return columns[below(columns.size())]; };
  const auto family = [&] { return static_cast<Family>(below(kFamilyCount)); };
  const auto times = [&] {
    const uint64_t from = below(4);
    return below(2) == 0 ? TimestampRange::All() : Between(from, from + below(4));
  };
  const auto rows = [&]() -> RowRange {
    switch (below(6)) {
      case 0:
        return {key(), key()};
      case 1:
        return RowRange::Prefix(key());
      case 2:
        return RowRange::All().After(key());
      case 3:
        return RowRange::All().Before(key());
      case 4:
        return RowRange::Single(key());
      default:
        return RowRange::All();
    }
  };
  for (int round = 0; round < rounds; ++round) {
    std::vector<RowMutation> batch;
    for (int i = 0; i < 12; ++i) {
      RowMutation& mutation = batch.emplace_back(RowMutation{"t", key(), {}, {}});
      for (uint64_t n = 1 + below(3); n > 0; --n) {
        mutation.mutations.push_back(below(3) == 0 ? Erase(column(), times(), family())
                                                   : Set(column(), 1 + below(4), std::string(below(9), 'v'), family()));
      }
    }
    for (const auto& result : store_->Mutate(batch)) ASSERT_THAT(result, IsOk());
    for (int i = 0; i < 4; ++i) {
      std::vector<Selector> selectors;
      for (uint64_t n = 1 + below(3); n > 0; --n) {
        Selector& selector = selectors.emplace_back(Columns(family(), times(), static_cast<uint32_t>(below(3))));
        if (below(2) == 0) selector.column = column();
      }
      const size_t row_limit = below(2) == 0 ? 1 + below(4) : 1000;
      ASSERT_NO_FATAL_FAILURE(ExpectReverseOfForward(ScanOf(rows(), std::move(selectors), row_limit)))
          << "seed " << seed << ", round " << round;
    }
  }
}

TEST_P(ReverseScanTest, RandomReverseScansAgreeWithForwardOnes) {
  for (uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) CompareRandomScans(seed, 15);
}

TEST_P(ReverseScanLimitsTest, RandomScansInTinyPagesAreTheReverseOfForwardOnes) {
  StoreLimits limits;
  limits.max_scan_bytes = 40;
  limits.max_scan_work = 9;
  Open(limits);
  for (uint64_t seed = 11; seed <= 13 && !HasFailure(); ++seed) CompareRandomScans(seed, 15);
}

TEST_P(ReverseScanLimitsTest, APageEndsAtTheFirstRowThatReachesScanBytes) {
  StoreLimits limits;
  limits.max_scan_bytes = 10'000;
  Open(limits);
  const std::vector<std::string> rows = CountedRows(100);
  for (const std::string& row : rows) Apply(row, {Set("c", 1, std::string(1000, 'v'))});
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), {Column("c")}));
  EXPECT_EQ(RowKeysOf(pages), Reversed(rows));
  for (const ScanPage& page : pages) {
    EXPECT_LE(page.rows.size(), 10u);
    // Keys, columns and some overhead may also count, but not as much as the values.
    if (page.resume.has_value()) {
      EXPECT_GE(page.rows.size(), 5u);
    }
  }
}

TEST_P(ReverseScanLimitsTest, ARowLargerThanScanBytesIsReturnedWhole) {
  StoreLimits limits;
  limits.max_scan_bytes = 100;
  Open(limits);
  for (const char* row : {"a", "b", "c"}) {
    Apply(row, {Set("c", 1, std::string(500, 'v')), Set("d", 1, std::string(500, 'v'))});
  }
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), Everything()));
  EXPECT_THAT(RowKeysOf(pages), ElementsAre("c", "b", "a"));
  for (const ScanPage& page : pages) {
    EXPECT_LE(page.rows.size(), 1u);
    for (const Row& row : page.rows) EXPECT_EQ(row.cells.size(), 2u);
  }
}

// Has the same name as the test of forward scans, because the same stores cannot pass it.
TEST_P(ReverseScanLimitsTest, APageEndsAfterBoundedWorkEvenIfNothingMatches) {
  StoreLimits limits;
  limits.max_scan_work = 50;
  Open(limits);
  const std::vector<std::string> rows = CountedRows(1000);
  ApplyRows(rows);
  Apply(rows.front(), {Set("early", 1, "")});
  for (const Selector& selector :
       {Column("early"), Column("c", Between(2, 3)), Columns(Family::kData, Between(2, 3))}) {
    const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), {selector}));
    EXPECT_GE(pages.size(), 10u) << "a thousand rows in few pages that may each look at fifty versions";
    EXPECT_EQ(RowsOf(pages).size(), selector.column == "early" ? 1u : 0u);
  }
  EXPECT_EQ(RowKeysOf(ReversePages(ReverseScanOf(RowRange::All(), Everything()))), Reversed(rows));
}

TEST_P(ReverseScanLimitsTest, ARowWithMoreVersionsThanScanWorkIsReturnedWhole) {
  StoreLimits limits;
  limits.max_scan_work = 10;
  Open(limits);
  std::vector<Mutation> sets;
  for (uint64_t ts = 1; ts <= 100; ++ts) sets.push_back(Set("c", ts, ""));
  Apply("a", sets);
  Apply("b", sets);
  const std::vector<ScanPage> pages = ReversePages(ReverseScanOf(RowRange::All(), Everything()));
  EXPECT_THAT(RowKeysOf(pages), ElementsAre("b", "a"));
  for (const ScanPage& page : pages) {
    for (const Row& row : page.rows) EXPECT_EQ(row.cells.size(), 100u);
  }
}

}  // namespace
}  // namespace percolator
