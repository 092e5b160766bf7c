// SPDX-License-Identifier: Apache-2.0

#include "src/store/validate.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

constexpr StoreLimits kLimits = {.max_row_key_bytes = 8,
                                 .max_column_bytes = 6,
                                 .max_value_bytes = 10,
                                 .max_row_selectors = 5,
                                 .max_row_mutations = 3,
                                 .max_row_mutation_bytes = 40,
                                 .max_scan_bytes = 100,
                                 .max_scan_work = 100};

std::string Of(size_t size) { return std::string(size, 'x'); }

Selector Column(std::string name, Family family = Family::kData) {
  return {family, std::move(name), TimestampRange::All(), Selector::kAllVersions};
}

Mutation Set(std::string column, std::string value) {
  return Mutation::Set(Family::kData, std::move(column), Timestamp(1), std::move(value));
}

RowMutation Mutate(std::string row, std::vector<Mutation> mutations, std::vector<CellRange> condition = {}) {
  return {"t", std::move(row), {Condition::Quantifier::kNone, std::move(condition)}, std::move(mutations)};
}

RowRead ReadOf(std::string row, Selector selector) { return {"t", std::move(row), {std::move(selector)}}; }

ScanRequest ScanOf(RowRange rows, size_t row_limit = 1) { return {"t", std::move(rows), {Selector{}}, row_limit}; }

void ExpectInvalid(const absl::Status& status, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& word : words) EXPECT_THAT(std::string(status.message()), HasSubstr(word));
}

TEST(ValidateTableNameTest, AcceptsLettersDigitsUnderscoreAndDash) {
  for (const std::string& name : {std::string("a"), std::string("AZaz09_-"), Of(64)}) {
    EXPECT_TRUE(ValidateTableName(name).ok()) << name;
  }
}

TEST(ValidateTableNameTest, RefusesOtherNames) {
  ExpectInvalid(ValidateTableName(""), {"table name", "empty"});
  ExpectInvalid(ValidateTableName(Of(65)), {"table name", "65", "64"});
  for (const char* name : {"a b", "a/b", ".", "a.b", "a\n", "\xc3\xa4", "a:b"}) {
    ExpectInvalid(ValidateTableName(name), {"table name"});
  }
  ExpectInvalid(ValidateTableName(std::string("a\0z", 3)), {"table name", "a\\x00z"});
}

TEST(ValidateTableTest, ASchemaIsLimitedInBytes) {
  StoreLimits limits = kLimits;
  limits.max_schema_bytes = 7;
  EXPECT_TRUE(ValidateTable({"t", Of(7)}, limits).ok());
  ExpectInvalid(ValidateTable({"t", Of(8)}, limits), {"schema of table t", "8", "7"});
  ExpectInvalid(ValidateTable({"", ""}, limits), {"table name"});
}

TEST(CheckRoomForTableTest, TheNumberOfTablesAndTheBytesOfTheirSchemasAreLimited) {
  StoreLimits limits = kLimits;
  limits.max_tables = 3;
  limits.max_total_schema_bytes = 10;
  const std::vector<TableInfo> two = {{"a", Of(4)}, {"b", Of(1)}};
  EXPECT_TRUE(CheckRoomForTable({"c", Of(5)}, two, limits).ok());
  const absl::Status large = CheckRoomForTable({"c", Of(6)}, two, limits);
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(large.message().find("11 bytes, more than the limit of 10"), std::string_view::npos) << large;
  limits.max_tables = 2;
  EXPECT_EQ(CheckRoomForTable({"c", ""}, two, limits).code(), absl::StatusCode::kResourceExhausted);
}

TEST(RowBytesTest, ManySelectorsAreLimitedInBytes) {
  StoreLimits limits = kLimits;
  limits.max_row_read_bytes = 20;
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  RowBytes few(limits.unlimited_selectors, kAny, limits);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(few.Add("c", 9)) << "few selectors have no limit";
  RowBytes many(limits.unlimited_selectors + 1, kAny, limits);
  EXPECT_TRUE(many.Add("c", 9));
  EXPECT_TRUE(many.Add("c", 9));
  EXPECT_TRUE(many.status().ok());
  EXPECT_FALSE(many.Add("c", 9));
  EXPECT_EQ(many.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(RowBytesTest, ARequestLimitsBytes) {
  RowBytes bytes(1, 20, kLimits);
  EXPECT_TRUE(bytes.Add("c", 19));
  EXPECT_FALSE(bytes.Add("", 1));
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ValidateReadTest, RowKeyHasAtLeastOneByteAndALimit) {
  EXPECT_TRUE(ValidateRead(ReadOf(Of(1), {}), kLimits).ok());
  EXPECT_TRUE(ValidateRead(ReadOf(Of(8), {}), kLimits).ok());
  ExpectInvalid(ValidateRead(ReadOf("", {}), kLimits), {"row key", "empty"});
  ExpectInvalid(ValidateRead(ReadOf(Of(9), {}), kLimits), {"row key", "9", "8"});
}

TEST(ValidateReadTest, SelectorNamesAKnownFamilyAndAColumnWithinTheLimit) {
  EXPECT_TRUE(ValidateRead(ReadOf("r", Column("")), kLimits).ok());
  EXPECT_TRUE(ValidateRead(ReadOf("r", Column(Of(6))), kLimits).ok());
  ExpectInvalid(ValidateRead(ReadOf("r", Column(Of(7), Family::kLock)), kLimits), {"column", "lock", "7", "6"});
  ExpectInvalid(ValidateRead(ReadOf("r", Column("c", static_cast<Family>(4))), kLimits), {"family 4"});
}

TEST(ValidateReadTest, SelectorsAreLimitedInNumber) {
  EXPECT_TRUE(ValidateRead({"t", "r", std::vector<Selector>(5)}, kLimits).ok());
  ExpectInvalid(ValidateRead({"t", "r", std::vector<Selector>(6)}, kLimits), {"selectors", "6", "5"});
  EXPECT_TRUE(ValidateScan({"t", RowRange::All(), std::vector<Selector>(5)}, kLimits).ok());
  ExpectInvalid(ValidateScan({"t", RowRange::All(), std::vector<Selector>(6)}, kLimits), {"selectors", "6", "5"});
}

TEST(ValidateReadTest, ASelectorWithAnEmptyRangeOfTimestampsIsAllowed) {
  Selector nothing;
  nothing.range = {Timestamp(5), Timestamp(2)};
  EXPECT_TRUE(ValidateRead(ReadOf("r", nothing), kLimits).ok());
}

TEST(ValidateReadTest, EverySelectorIsChecked) {
  RowRead read = ReadOf("r", {});
  read.selectors.push_back(Column(Of(7)));
  ExpectInvalid(ValidateRead(read, kLimits), {"column"});
  read.selectors.clear();
  EXPECT_TRUE(ValidateRead(read, kLimits).ok());
}

TEST(ValidateScanTest, RowLimitIsAtLeastOne) {
  EXPECT_TRUE(ValidateScan(ScanOf(RowRange::All(), 1), kLimits).ok());
  ExpectInvalid(ValidateScan(ScanOf(RowRange::All(), 0), kLimits), {"row limit"});
}

TEST(ValidateScanTest, BordersMayBeOneByteLongerThanARowKey) {
  EXPECT_TRUE(ValidateScan(ScanOf(RowRange::Single(Of(8))), kLimits).ok());
  EXPECT_TRUE(ValidateScan(ScanOf(RowRange::All().After(Of(8))), kLimits).ok());
  ExpectInvalid(ValidateScan(ScanOf({Of(10), {}}), kLimits), {"start", "10", "9"});
  ExpectInvalid(ValidateScan(ScanOf({"", Of(10)}), kLimits), {"limit", "10", "9"});
}

TEST(ValidateScanTest, AnEmptyRangeOfRowsIsAllowed) {
  EXPECT_TRUE(ValidateScan(ScanOf({"b", "a"}), kLimits).ok());
  EXPECT_TRUE(ValidateScan(ScanOf({"", ""}), kLimits).ok());
}

TEST(ValidateScanTest, SelectorsAreChecked) {
  ScanRequest scan = ScanOf(RowRange::All());
  scan.selectors[0].column = Of(7);
  ExpectInvalid(ValidateScan(scan, kLimits), {"column", "7", "6"});
}

TEST(ValidateMutationTest, RowKeyHasAtLeastOneByteAndALimit) {
  EXPECT_TRUE(ValidateMutation(Mutate(Of(8), {Set("c", "v")}), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate("", {Set("c", "v")}), kLimits), {"row key", "empty"});
  ExpectInvalid(ValidateMutation(Mutate(Of(9), {Set("c", "v")}), kLimits), {"row key", "9", "8"});
}

TEST(ValidateMutationTest, AMutationWithoutChangesIsAllowed) {
  EXPECT_TRUE(ValidateMutation(Mutate("r", {}), kLimits).ok());
}

TEST(ValidateMutationTest, ColumnsAndValuesAreLimitedInBytes) {
  EXPECT_TRUE(ValidateMutation(Mutate("r", {Set("", "")}), kLimits).ok());
  EXPECT_TRUE(ValidateMutation(Mutate("r", {Set(Of(6), Of(10))}), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate("r", {Set("c", "v"), Set(Of(7), "v")}), kLimits), {"column", "7", "6"});
  ExpectInvalid(ValidateMutation(Mutate("r", {Set("col", Of(11))}), kLimits), {"value", "col", "11", "10"});
}

TEST(ValidateMutationTest, EraseOfATooLongColumnIsRefused) {
  ExpectInvalid(ValidateMutation(Mutate("r", {Mutation::Erase(Family::kData, Of(7), TimestampRange::All())}), kLimits),
                {"column", "7", "6"});
}

TEST(ValidateMutationTest, EraseOfAnEmptyRangeOfTimestampsIsAllowed) {
  const Mutation erase = Mutation::Erase(Family::kData, "c", {Timestamp(5), Timestamp(5)});
  EXPECT_TRUE(ValidateMutation(Mutate("r", {erase}), kLimits).ok());
}

TEST(ValidateMutationTest, SetNeedsExactlyOneFiniteTimestamp) {
  const Timestamp last(Timestamp::Infinity().value() - 1);
  EXPECT_TRUE(ValidateMutation(Mutate("r", {Mutation::Set(Family::kData, "c", last, "v")}), kLimits).ok());
  EXPECT_TRUE(ValidateMutation(Mutate("r", {Mutation::Set(Family::kData, "c", {}, "v")}), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate("r", {Mutation::Set(Family::kData, "c", Timestamp::Infinity(), "v")}), kLimits),
                {"infinite"});
  Mutation wide = Set("c", "v");
  wide.range = {Timestamp(3), Timestamp(5)};
  ExpectInvalid(ValidateMutation(Mutate("r", {wide}), kLimits), {"[3, 5)"});
}

TEST(ValidateMutationTest, MutationsAndConditionCellsAreEachLimitedInNumber) {
  const std::vector<Mutation> mutations(3, Set("c", "v"));
  const std::vector<CellRange> cells(3, CellRange{Family::kData, "c", {}});
  EXPECT_TRUE(ValidateMutation(Mutate("r", mutations, cells), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate("r", std::vector<Mutation>(4, Set("c", "v"))), kLimits),
                {"row mutation", "4 mutations", "3"});
  ExpectInvalid(ValidateMutation(Mutate("r", {}, std::vector<CellRange>(4, cells[0])), kLimits),
                {"condition", "4 cells", "3"});
}

TEST(ValidateMutationTest, BytesOfKeyColumnsAndValuesAreLimitedTogether) {
  // 6 + 4 + (6 + 10) + (4 + 10) = 40
  std::vector<Mutation> mutations = {Set(Of(6), Of(10)), Set(Of(4), Of(10))};
  const std::vector<CellRange> cells = {{Family::kLock, Of(4), {}}};
  EXPECT_TRUE(ValidateMutation(Mutate(Of(6), mutations, cells), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate(Of(7), mutations, cells), kLimits), {"row mutation", "41 bytes", "40"});
  mutations[1].column += 'x';
  ExpectInvalid(ValidateMutation(Mutate(Of(6), mutations, cells), kLimits), {"row mutation", "41 bytes", "40"});
}

TEST(ValidateMutationTest, ConditionCellsAreChecked) {
  EXPECT_TRUE(ValidateMutation(Mutate("r", {}, {{Family::kData, "c", {Timestamp(2), Timestamp(1)}}}), kLimits).ok());
  ExpectInvalid(ValidateMutation(Mutate("r", {}, {{Family::kWrite, Of(7), {}}}), kLimits), {"column", "write"});
  ExpectInvalid(ValidateMutation(Mutate("r", {}, {{static_cast<Family>(9), "c", {}}}), kLimits), {"family 9"});
}

TEST(ValidateMutationTest, NumbersOutsideTheEnumerationsAreRefused) {
  Mutation no_family = Set("c", "v");
  no_family.family = static_cast<Family>(200);
  ExpectInvalid(ValidateMutation(Mutate("r", {no_family}), kLimits), {"family 200"});
  Mutation no_kind = Set("c", "v");
  no_kind.kind = static_cast<Mutation::Kind>(2);
  ExpectInvalid(ValidateMutation(Mutate("r", {no_kind}), kLimits), {"kind of mutation 2"});
  RowMutation no_quantifier = Mutate("r", {});
  no_quantifier.condition.quantifier = static_cast<Condition::Quantifier>(3);
  ExpectInvalid(ValidateMutation(no_quantifier, kLimits), {"quantifier 3"});
}

TEST(StatusTest, CommonErrorsHaveTheirCodesAndNameTheTableOrStore) {
  EXPECT_EQ(UnknownTable("x").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(UnknownTable("docs").message()), HasSubstr("docs"));
  EXPECT_EQ(TableExists("x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(TableExists("docs").message()), HasSubstr("docs"));
  EXPECT_EQ(StoreClosed("memory store").code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace percolator
