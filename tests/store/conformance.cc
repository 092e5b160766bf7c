// SPDX-License-Identifier: Apache-2.0

#include "tests/store/conformance.h"

#include <optional>
#include <utility>

namespace percolator {
namespace {

std::vector<StoreKind> StoresWith(bool StoreKind::*ability) {
  std::vector<StoreKind> kinds;
  for (const StoreKind& kind : StoresToTest()) {
    if (kind.*ability) kinds.push_back(kind);
  }
  return kinds;
}

constexpr int kMaxPages = 100'000;  // a scan with more pages never ends

}  // namespace

std::vector<StoreKind> StoresThatKeepContent() { return StoresWith(&StoreKind::keeps_content); }
std::vector<StoreKind> StoresThatTakeLimits() { return StoresWith(&StoreKind::takes_limits); }
std::string NameOfStore(const ::testing::TestParamInfo<StoreKind>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::ValuesIn(StoresToTest()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, StoreReopenTest, ::testing::ValuesIn(StoresThatKeepContent()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, StoreLimitsTest, ::testing::ValuesIn(StoresThatTakeLimits()), NameOfStore);

// Programs whose stores support none of this have no such tests.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreReopenTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreLimitsTest);

Mutation Set(std::string column, uint64_t ts, std::string value, Family family) {
  return Mutation::Set(family, std::move(column), Timestamp(ts), std::move(value));
}

Mutation Erase(std::string column, TimestampRange range, Family family) {
  return Mutation::Erase(family, std::move(column), range);
}

Mutation EraseAt(std::string column, uint64_t ts, Family family) {
  return Erase(std::move(column), TimestampRange::Exactly(Timestamp(ts)), family);
}

Selector Column(std::string column, TimestampRange range, uint32_t newest) {
  return {Family::kData, std::move(column), range, newest};
}

Selector Columns(Family family, TimestampRange range, uint32_t newest) { return {family, std::nullopt, range, newest}; }

std::vector<Selector> Everything() {
  return {Columns(Family::kData), Columns(Family::kLock), Columns(Family::kWrite), Columns(Family::kNotify)};
}

ScanRequest ScanOf(RowRange rows, std::vector<Selector> selectors, size_t row_limit) {
  return {"t", std::move(rows), std::move(selectors), row_limit};
}

CellRange At(std::string column, uint64_t ts, Family family) {
  return {family, std::move(column), TimestampRange::Exactly(Timestamp(ts))};
}

CellRange In(std::string column, TimestampRange range, Family family) { return {family, std::move(column), range}; }

Condition None(std::vector<CellRange> cells) { return {Condition::Quantifier::kNone, std::move(cells)}; }
Condition Any(std::vector<CellRange> cells) { return {Condition::Quantifier::kAny, std::move(cells)}; }
Condition All(std::vector<CellRange> cells) { return {Condition::Quantifier::kAll, std::move(cells)}; }

TimestampRange Between(uint64_t from, uint64_t until) { return {Timestamp(from), Timestamp(until)}; }

std::vector<std::string> NastyStrings() {
  const std::string alphabet("\x00\x01\xfe\xff", 4);
  std::vector<std::string> strings;
  for (char first : alphabet) {
    strings.push_back({first});
    for (char second : alphabet) strings.push_back({first, second});
  }
  return strings;
}

void StoreTest::SetUp() {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto it = GetParam().cannot.find(test.substr(0, test.find('/')));
  if (it != GetParam().cannot.end()) GTEST_SKIP() << it->second;
  if (const absl::Status ready = GetParam().ready(); !ready.ok()) GTEST_SKIP() << ready;
  Open({});
}

void StoreTest::Open(const StoreLimits& limits) {
  store_ = nullptr;
  if (place_ == nullptr) place_ = GetParam().make();
  absl::StatusOr<std::unique_ptr<Store>> store = place_->Open(limits);
  ASSERT_THAT(store, IsOk());
  store_ = *std::move(store);
  absl::StatusOr<std::vector<TableInfo>> tables = store_->ListTables();
  ASSERT_THAT(tables, IsOk());
  if (tables->empty()) {
    ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  }
}

absl::StatusOr<MutateResult> StoreTest::Mutate(const std::string& row, std::vector<Mutation> mutations,
                                               Condition condition) {
  std::vector<absl::StatusOr<MutateResult>> results =
      store_->Mutate({{"t", row, std::move(condition), std::move(mutations)}});
  if (results.size() != 1) return absl::InternalError("not one result for one row mutation");
  return results[0];
}

void StoreTest::Apply(const std::string& row, std::vector<Mutation> mutations, Condition condition) {
  absl::StatusOr<MutateResult> result = Mutate(row, std::move(mutations), std::move(condition));
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(*result, MutateResult::kApplied);
}

void StoreTest::ApplyRows(const std::vector<std::string>& rows) {
  std::vector<RowMutation> batch;
  for (const std::string& row : rows) batch.push_back({"t", row, {}, {Set("c", 1, row)}});
  const std::vector<absl::StatusOr<MutateResult>> results = store_->Mutate(batch);
  ASSERT_EQ(results.size(), rows.size());
  for (const absl::StatusOr<MutateResult>& result : results) {
    ASSERT_THAT(result, IsOk());
    ASSERT_EQ(*result, MutateResult::kApplied);
  }
}

std::string StoreTest::Read(const std::string& row, const std::vector<Selector>& selectors) {
  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", row, selectors}});
  if (!rows.ok()) return rows.status().ToString();
  if (rows->size() != 1 || rows->front().key != row) return "another row than the requested one: " + ToText(*rows);
  return ToText(rows->front().cells);
}

std::string StoreTest::Scan(const ScanRequest& request) {
  std::vector<Row> rows;
  for (ScanPage& page : ScanPages(request)) {
    for (Row& row : page.rows) rows.push_back(std::move(row));
  }
  return ToText(rows);
}

std::string StoreTest::Scan(RowRange rows, std::vector<Selector> selectors) {
  return Scan(ScanOf(std::move(rows), std::move(selectors)));
}

std::vector<std::string> StoreTest::ScanKeys(RowRange rows) {
  std::vector<std::string> keys;
  for (const ScanPage& page : ScanPages(ScanOf(std::move(rows), Everything()))) {
    for (const Row& row : page.rows) keys.push_back(row.key);
  }
  return keys;
}

std::vector<ScanPage> StoreTest::ScanPages(ScanRequest request) {
  std::vector<ScanPage> pages;
  while (pages.size() < kMaxPages) {
    absl::StatusOr<ScanPage> page = store_->Scan(request);
    EXPECT_THAT(page, IsOk());
    if (!page.ok()) return pages;
    EXPECT_LE(page->rows.size(), request.row_limit);
    std::string least = request.rows.start;
    for (const Row& row : page->rows) {
      EXPECT_GE(row.key, least);
      EXPECT_TRUE(!request.rows.limit.has_value() || row.key < *request.rows.limit) << ToText(row);
      EXPECT_FALSE(row.cells.empty()) << ToText(row);
      least = row.key + '\0';
    }
    pages.push_back(*std::move(page));
    if (!pages.back().resume.has_value()) return pages;
    EXPECT_GE(*pages.back().resume, least);
    EXPECT_GT(*pages.back().resume, request.rows.start) << "the scan makes no progress";
    request.rows.start = *pages.back().resume;
  }
  ADD_FAILURE() << "the scan does not end";
  return pages;
}

}  // namespace percolator
