// SPDX-License-Identifier: Apache-2.0

// The store in Bigtable against a server that behaves in ways emulators never do: split cells, broken streams, errors
// of every kind.

#include "src/store/bigtable/bigtable_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "tests/harness/wrong_clock.h"
#include "tests/store/fake_bigtable.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Chunk = FakeBigtable::ReadRowsResponse::CellChunk;

const grpc::Status kFine;
const grpc::Status kGone(grpc::StatusCode::UNAVAILABLE, "connection lost");

class BigtableStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(Options()); }

  BigtableStoreOptions Options() const {
    BigtableStoreOptions options;
    options.project = "p";
    options.instance = "i";
    options.endpoint = fake_.target();
    options.safe_point_age = std::chrono::milliseconds(50);
    return options;
  }

  void Open(const BigtableStoreOptions& options) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenBigtableStore(options);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  // Column c of rows, as text.
  std::string Read(const std::vector<std::string>& rows) {
    std::vector<RowRead> reads;
    for (const std::string& row : rows) reads.push_back({"t", row, {{Family::kData, "c"}}});
    const absl::StatusOr<std::vector<Row>> answer = store_->Read(reads);
    return answer.ok() ? ToText(*answer) : std::string(absl::StatusCodeToString(answer.status().code()));
  }

  static RowMutation Set(std::string row, Condition condition = {}) {
    return {"t", std::move(row), std::move(condition), {Mutation::Set(Family::kData, "c", Timestamp(1), "v")}};
  }
  static Condition Unlocked() { return {Condition::Quantifier::kNone, {{Family::kLock, "c", TimestampRange::All()}}}; }
  static Condition Locked() { return {Condition::Quantifier::kAll, {{Family::kLock, "c", TimestampRange::All()}}}; }

  // "applied", "failed" or the code of the error, for each.
  std::vector<std::string> Mutate(const std::vector<RowMutation>& mutations) {
    std::vector<std::string> outcomes;
    for (const absl::StatusOr<MutateResult>& result : store_->Mutate(mutations)) {
      outcomes.push_back(!result.ok()                        ? absl::StatusCodeToString(result.status().code())
                         : *result == MutateResult::kApplied ? "applied"
                                                             : "failed");
    }
    return outcomes;
  }

  FakeBigtable fake_;
  std::unique_ptr<Store> store_;
};

std::vector<std::string> KeysOf(const FakeBigtable::ReadRowsRequest& request) {
  return {request.rows().row_keys().begin(), request.rows().row_keys().end()};
}

// --- Routing headers

TEST_F(BigtableStoreTest, EveryRequestHasARoutingHeader) {
  BigtableStoreOptions options = Options();
  options.app_profile = "single cluster";
  Open(options);
  Read({"r"});
  EXPECT_THAT(Mutate({Set("a"), Set("b"), Set("c", Unlocked())}), ElementsAre("applied", "applied", "applied"));
  EXPECT_THAT(Mutate({Set("a")}), ElementsAre("applied"));
  const absl::StatusOr<std::vector<std::string>> keys = store_->SampleRowKeys("t");
  ASSERT_THAT(keys, IsOk());
  EXPECT_THAT(*keys, ElementsAre("k", "m")) << "the end of the table is not a key";
  const std::string table = "table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft-1&app_profile_id=single%20cluster";
  for (const char* rpc : {"ReadRows ", "MutateRow ", "MutateRows ", "CheckAndMutateRow ", "SampleRowKeys "}) {
    EXPECT_THAT(fake_.routes(), Contains(rpc + table));
  }
  EXPECT_EQ(fake_.reads().at(0).app_profile_id(), "single cluster");
  EXPECT_EQ(fake_.mutations().at(0).app_profile_id(), "single cluster");
  EXPECT_EQ(fake_.batches().at(0).app_profile_id(), "single cluster");
  EXPECT_EQ(fake_.checks().at(0).app_profile_id(), "single cluster");
}

TEST_F(BigtableStoreTest, RequestsForTablesHaveARoutingHeader) {
  fake_.SetGeneration(0);
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  EXPECT_THAT(fake_.routes(), Contains("CreateTable parent=projects%2Fp%2Finstances%2Fi"));
  fake_.SetGeneration(1);
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  EXPECT_THAT(fake_.routes(), Contains("DeleteTable name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft-1"));
}

TEST_F(BigtableStoreTest, TheEmulatorOfTheEnvironmentIsUsed) {
  BigtableStoreOptions options = Options();
  options.endpoint.clear();
  ASSERT_EQ(setenv("BIGTABLE_EMULATOR_HOST", fake_.target().c_str(), 1), 0);
  Open(options);
  ASSERT_EQ(unsetenv("BIGTABLE_EMULATOR_HOST"), 0);
  fake_.ScriptRead({{Message({WholeRow("r", "v")})}, kFine});
  EXPECT_EQ(Read({"r"}), "r{data:c@1=v}");
}

TEST_F(BigtableStoreTest, TheNameOfTheInstanceIsRequired) {
  BigtableStoreOptions options = Options();
  options.instance.clear();
  EXPECT_THAT(OpenBigtableStore(options), StatusIs(absl::StatusCode::kInvalidArgument));
}

// --- Reading

TEST_F(BigtableStoreTest, ReadsOfTheSameSelectorsAreOneRequest) {
  fake_.ScriptRead({{Message({WholeRow("a", "1")}), Message({WholeRow("c", "2")})}, kFine});
  EXPECT_EQ(Read({"c", "b", "a", "c"}), "c{data:c@1=2} b{} a{data:c@1=1} c{data:c@1=2}");
  ASSERT_THAT(fake_.reads(), SizeIs(1));
  EXPECT_THAT(KeysOf(fake_.reads()[0]), ElementsAre("a", "b", "c"));
}

TEST_F(BigtableStoreTest, NarrowReadsOfDifferentColumnsAreOneRequestToo) {
  const auto newest = [](const char* row, const char* column) {
    return RowRead{"t", row, {{Family::kData, column, TimestampRange::All(), 1}}};
  };
  Chunk other = WholeRow("a", "not asked for");
  other.clear_commit_row();
  other.mutable_qualifier()->set_value("b");
  fake_.ScriptRead({{Message({other, WholeRow("a", "1"), WholeRow("b", "2")})}, kFine});
  const absl::StatusOr<std::vector<Row>> rows = store_->Read({newest("a", "c"), newest("b", "b")});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(ToText(*rows), "a{data:c@1=1} b{}") << "each caller gets its own row";
  ASSERT_THAT(fake_.reads(), SizeIs(1));
  EXPECT_EQ(fake_.reads()[0].filter().interleave().filters_size(), 2);
}

TEST_F(BigtableStoreTest, WideReadsAreSentAlone) {
  const RowRead wide{"t", "a", {{Family::kData, std::nullopt}}};
  const RowRead versions{"t", "b", {{Family::kData, "c"}}};
  ASSERT_THAT(store_->Read({wide, versions, wide}), IsOk());
  ASSERT_THAT(fake_.reads(), SizeIs(2));
  std::vector<RowRead> many;  // each of them narrow
  for (int i = 0; i < 40; ++i) many.push_back({"t", "a", {{Family::kData, std::to_string(i), {}, 1}}});
  ASSERT_THAT(store_->Read(many), IsOk());
  EXPECT_THAT(fake_.reads(), SizeIs(2 + 3)) << "sixteen columns at most";
}

TEST_F(BigtableStoreTest, CellsInPartsAndResetRowsAreReadWhole) {
  Chunk first = WholeRow("r", "be");
  first.clear_commit_row();
  first.set_value_size(9);
  Chunk reset;
  reset.set_reset_row(true);
  Chunk middle, last;
  middle.set_value("gin");
  middle.set_value_size(9);
  last.set_value("ning");
  Chunk other;  // of the same row, family and column
  other.set_timestamp_micros(0);
  other.set_value("old");
  other.set_commit_row(true);
  fake_.ScriptRead(
      {{Message({first, middle}), Message({reset, first}), Message({middle}), Message({last, other})}, kFine});
  EXPECT_EQ(Read({"r"}), "r{data:c@1=beginning data:c@0=old}");
}

TEST_F(BigtableStoreTest, ABrokenStreamContinuesAfterTheLastWholeRow) {
  Chunk half = WholeRow("c", "half");
  half.clear_commit_row();
  fake_.ScriptRead({{Message({WholeRow("a", "1"), half})}, kGone});
  fake_.ScriptRead({{Message({WholeRow("c", "3")})}, kFine});
  EXPECT_EQ(Read({"a", "b", "c"}), "a{data:c@1=1} b{} c{data:c@1=3}");
  ASSERT_THAT(fake_.reads(), SizeIs(2));
  EXPECT_THAT(KeysOf(fake_.reads()[1]), ElementsAre("b", "c"));
  EXPECT_EQ(RpcsOf(*store_).repeated, 1u);
}

TEST_F(BigtableStoreTest, ABrokenStreamContinuesAfterTheLastScannedRow) {
  FakeBigtable::ReadRowsResponse scanned;
  scanned.set_last_scanned_row_key("b");
  fake_.ScriptRead({{scanned}, kGone});
  fake_.ScriptRead({{Message({WholeRow("c", "3")})}, kFine});
  EXPECT_EQ(Read({"a", "b", "c"}), "a{} b{} c{data:c@1=3}");
  EXPECT_THAT(KeysOf(fake_.reads().at(1)), ElementsAre("c"));
}

TEST_F(BigtableStoreTest, AnAnswerThatBreaksAfterItsLastRowIsWhole) {
  fake_.ScriptRead({{Message({WholeRow("a", "1")})}, kGone});
  EXPECT_EQ(Read({"a"}), "a{data:c@1=1}");
  EXPECT_THAT(fake_.reads(), SizeIs(1));
}

TEST_F(BigtableStoreTest, AReadFailsAfterSeveralConsecutiveErrors) {
  for (int i = 0; i < 20; ++i) fake_.ScriptRead({{}, kGone});
  EXPECT_EQ(Read({"a"}), "UNAVAILABLE");
  EXPECT_THAT(fake_.reads(), SizeIs(5));
}

TEST_F(BigtableStoreTest, ErrorsThatStayAreNotTriedAgain) {
  fake_.ScriptRead({{}, {grpc::StatusCode::PERMISSION_DENIED, "no"}});
  EXPECT_EQ(Read({"a"}), "PERMISSION_DENIED");
  EXPECT_THAT(fake_.reads(), SizeIs(1));
}

TEST_F(BigtableStoreTest, HalfARowIsNeverReturned) {
  Chunk half = WholeRow("a", "half");
  half.clear_commit_row();
  fake_.ScriptRead({{Message({half})}, kFine});
  EXPECT_EQ(Read({"a"}), "INTERNAL");
  fake_.ScriptRead({{Message({half, WholeRow("b", "v")})}, kFine});
  EXPECT_EQ(Read({"a"}), "INTERNAL");
}

TEST_F(BigtableStoreTest, AServerThatHangsIsGivenUpAtTheTimeout) {
  BigtableStoreOptions options = Options();
  options.timeout = std::chrono::seconds(1);  // the default is ten
  Open(options);
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 3; ++i) {  // the machine may be busy for a while
    fake_.ScriptRead({{}, kFine, /*hangs=*/true});
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(Read({"a"}), "DEADLINE_EXCEEDED");
    quickest = std::min(quickest, std::chrono::steady_clock::now() - begun);
  }
  EXPECT_LT(quickest, std::chrono::seconds(5));
}

// --- Scanning

class BigtableScanTest : public BigtableStoreTest {
 protected:
  absl::StatusOr<ScanPage> Scan(RowRange rows = RowRange::All(), size_t row_limit = 10) {
    return store_->Scan({"t", std::move(rows), {{Family::kData, "c"}}, row_limit});
  }
};

TEST_F(BigtableScanTest, APageThatBreaksOffIsShort) {
  fake_.ScriptRead({{Message({WholeRow("a", "1"), WholeRow("b", "2")})}, kGone});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "a{data:c@1=1} b{data:c@1=2}");
  EXPECT_EQ(page->resume, std::string("b\0", 2));
  EXPECT_THAT(fake_.reads(), SizeIs(1));
}

TEST_F(BigtableScanTest, APageThatNeverBeganIsTriedAgain) {
  fake_.ScriptRead({{}, kGone});
  fake_.ScriptRead({{Message({WholeRow("b", "2")})}, kFine});
  const absl::StatusOr<ScanPage> page = Scan({"a", "x"}, 7);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "b{data:c@1=2}");
  EXPECT_FALSE(page->resume.has_value());
  ASSERT_THAT(fake_.reads(), SizeIs(2));
  EXPECT_EQ(fake_.reads()[1].rows_limit(), 7);
  EXPECT_EQ(fake_.reads()[1].rows().row_ranges(0).start_key_closed(), "a");
  EXPECT_EQ(fake_.reads()[1].rows().row_ranges(0).end_key_open(), "x");
}

TEST_F(BigtableScanTest, ABorderIsNeverLongerThanAKey) {
  const std::string longest(StoreLimits().max_row_key_bytes, 'k');
  const std::string other(StoreLimits().max_row_key_bytes, 'm');
  ASSERT_THAT(Scan({RowRange::All().After(longest).start, RowRange::All().After(other).start}), IsOk());
  ASSERT_THAT(fake_.reads(), SizeIs(1));
  EXPECT_EQ(fake_.reads()[0].rows().row_ranges(0).start_key_open(), longest);
  EXPECT_EQ(fake_.reads()[0].rows().row_ranges(0).end_key_closed(), other);
}

TEST_F(BigtableScanTest, ScannedRowsCountAsProgress) {
  FakeBigtable::ReadRowsResponse scanned;
  scanned.set_last_scanned_row_key("m");
  fake_.ScriptRead({{scanned}, kGone});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->rows, IsEmpty());
  EXPECT_EQ(page->resume, std::string("m\0", 2));
}

TEST_F(BigtableScanTest, ALargePageCancelsTheRestOfTheRequest) {
  BigtableStoreOptions options = Options();
  options.limits.max_scan_bytes = 10;
  Open(options);
  fake_.ScriptRead(
      {{Message({WholeRow("a", "1"), WholeRow("b", "0123456789"), WholeRow("c", "3")})}, kFine, /*hangs=*/true});
  const absl::StatusOr<ScanPage> page = Scan();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(ToText(page->rows), "a{data:c@1=1} b{data:c@1=0123456789}");
  EXPECT_EQ(page->resume, std::string("b\0", 2));
}

// --- Mutations

TEST_F(BigtableStoreTest, AMutationWithoutConditionIsRepeated) {
  fake_.ScriptMutateRow(kGone);
  fake_.ScriptMutateRow({grpc::StatusCode::ABORTED, "moved"});
  EXPECT_THAT(Mutate({Set("r")}), ElementsAre("applied"));
  EXPECT_THAT(fake_.mutations(), SizeIs(3));
}

TEST_F(BigtableStoreTest, OnlyEntriesThatFailedAreRepeated) {
  fake_.ScriptMutateRows({kFine, kGone, {grpc::StatusCode::INVALID_ARGUMENT, "no"}});  // no status for the fourth
  fake_.ScriptMutateRows({kFine, kFine});
  EXPECT_THAT(Mutate({Set("a"), Set("b"), Set("c"), Set("d")}),
              ElementsAre("applied", "applied", "INVALID_ARGUMENT", "applied"));
  ASSERT_THAT(fake_.batches(), SizeIs(2));
  ASSERT_EQ(fake_.batches()[1].entries_size(), 2);
  EXPECT_EQ(fake_.batches()[1].entries(0).row_key(), "b");
  EXPECT_EQ(fake_.batches()[1].entries(1).row_key(), "d");
}

TEST_F(BigtableStoreTest, ABatchThatBreaksOffIsRepeatedFromThere) {
  fake_.ScriptMutateRows({kFine}, kGone);
  EXPECT_THAT(Mutate({Set("a"), Set("b"), Set("c")}), ElementsAre("applied", "applied", "applied"));
  ASSERT_THAT(fake_.batches(), SizeIs(2));
  EXPECT_EQ(fake_.batches()[1].entries_size(), 2);
}

TEST_F(BigtableStoreTest, EntriesOfOneRowAreNeverInOneRequest) {
  EXPECT_THAT(Mutate({Set("a"), Set("b"), Set("a"), Set("b"), Set("a", Unlocked())}),
              ElementsAre("applied", "applied", "applied", "applied", "applied"));
  ASSERT_THAT(fake_.batches(), SizeIs(2));
  for (const auto& batch : fake_.batches()) EXPECT_EQ(batch.entries_size(), 2);
  EXPECT_THAT(fake_.checks(), SizeIs(1));
}

TEST_F(BigtableStoreTest, AConditionDecidesWhichMutationsAreSent) {
  fake_.ScriptCheck(kFine, /*matched=*/false);
  fake_.ScriptCheck(kFine, /*matched=*/true);
  fake_.ScriptCheck(kFine, /*matched=*/true);
  fake_.ScriptCheck(kFine, /*matched=*/false);
  EXPECT_THAT(Mutate({Set("a", Unlocked())}), ElementsAre("applied"));
  EXPECT_THAT(Mutate({Set("a", Unlocked())}), ElementsAre("failed"));
  EXPECT_THAT(Mutate({Set("a", Locked())}), ElementsAre("applied"));
  EXPECT_THAT(Mutate({Set("a", Locked())}), ElementsAre("failed"));
  EXPECT_EQ(fake_.checks().at(0).false_mutations_size(), 1);
  EXPECT_EQ(fake_.checks().at(0).true_mutations_size(), 0);
  EXPECT_EQ(fake_.checks().at(2).false_mutations_size(), 0);
  EXPECT_EQ(fake_.checks().at(2).true_mutations_size(), 1);
}

TEST_F(BigtableStoreTest, AConditionIsNeverSentTwice) {
  struct Case {
    grpc::StatusCode said;
    const char* result;
  };
  // An error that leaves the outcome open must not become a code that says it was not applied, or a code with another
  // meaning for a transaction.
  const std::vector<Case> cases = {{grpc::StatusCode::UNAVAILABLE, "UNAVAILABLE"},
                                   {grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
                                   {grpc::StatusCode::ABORTED, "UNAVAILABLE"},
                                   {grpc::StatusCode::CANCELLED, "UNAVAILABLE"},
                                   {grpc::StatusCode::RESOURCE_EXHAUSTED, "UNAVAILABLE"},
                                   {grpc::StatusCode::UNKNOWN, "UNAVAILABLE"},
                                   {grpc::StatusCode::INTERNAL, "UNAVAILABLE"},
                                   {grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED"},
                                   {grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED"},
                                   {grpc::StatusCode::INVALID_ARGUMENT, "INVALID_ARGUMENT"},
                                   {grpc::StatusCode::FAILED_PRECONDITION, "FAILED_PRECONDITION"},
                                   {grpc::StatusCode::OUT_OF_RANGE, "OUT_OF_RANGE"}};
  for (const Case& c : cases) {
    const size_t before = fake_.checks().size();
    fake_.ScriptCheck({c.said, "said the server"});
    EXPECT_THAT(Mutate({Set("a", Unlocked())}), ElementsAre(c.result)) << c.said;
    EXPECT_EQ(fake_.checks().size(), before + 1) << c.said;
  }
}

TEST_F(BigtableStoreTest, AProfileWithoutSingleRowTransactionsIsExplained) {
  fake_.ScriptCheck(
      {grpc::StatusCode::FAILED_PRECONDITION, "Single-row transactions are not allowed by this app profile"});
  const absl::Status status = store_->Mutate({Set("a", Unlocked())})[0].status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("not allowed"), HasSubstr("single cluster")));
}

TEST_F(BigtableStoreTest, AConditionWithoutMutationsIsARead) {
  fake_.ScriptRead({{Message({WholeRow("a", "1")})}, kFine});
  const Condition any{Condition::Quantifier::kAny, {{Family::kData, "c", TimestampRange::All()}}};
  EXPECT_THAT(Mutate({{"t", "a", any, {}}}), ElementsAre("applied"));
  EXPECT_THAT(Mutate({{"t", "a", any, {}}}), ElementsAre("failed"));
  EXPECT_THAT(fake_.checks(), IsEmpty());
}

TEST_F(BigtableStoreTest, ARecreatedTableIsFound) {
  EXPECT_THAT(Mutate({Set("a")}), ElementsAre("applied"));
  fake_.SetGeneration(2);
  fake_.ScriptMutateRow({grpc::StatusCode::NOT_FOUND, "no such table"});
  EXPECT_THAT(Mutate({Set("a")}), ElementsAre("applied"));
  EXPECT_EQ(fake_.mutations().back().table_name(), "projects/p/instances/i/tables/t-2");
  fake_.SetGeneration(0);
  fake_.ScriptMutateRow({grpc::StatusCode::NOT_FOUND, "no such table"});
  EXPECT_THAT(Mutate({Set("a")}), ElementsAre("NOT_FOUND"));
}

TEST_F(BigtableStoreTest, TheSafePointIsReadOncePerPeriod) {
  BigtableStoreOptions options = Options();
  options.safe_point_age = std::chrono::hours(1);
  Open(options);
  for (int i = 0; i < 5; ++i) ASSERT_THAT(store_->SafePoint(), IsOk());
  EXPECT_EQ(RpcsOf(*store_).read_rows, 1u);
}

TEST_F(BigtableStoreTest, TheSafePointIsReadAgainAfterTheMachineHasSlept) {
  WrongClock clock;
  BigtableStoreOptions options = Options();
  options.safe_point_age = std::chrono::hours(1);
  options.clock = &clock;
  Open(options);
  ASSERT_THAT(store_->SafePoint(), IsOk());
  clock.boot_ahead = 3'600'000'000;
  ASSERT_THAT(store_->SafePoint(), IsOk());
  EXPECT_EQ(RpcsOf(*store_).read_rows, 2u);
  store_.reset();
}

TEST_F(BigtableStoreTest, RequestsAreCounted) {
  Read({"a", "b"});
  Mutate({Set("a")});
  Mutate({Set("a"), Set("b"), Set("c", Unlocked())});
  const BigtableRpcs rpcs = RpcsOf(*store_);
  EXPECT_EQ(rpcs.read_rows, 2u) << "one of them for the catalog";
  EXPECT_EQ(rpcs.mutate_row, 1u);
  EXPECT_EQ(rpcs.mutate_rows, 1u);
  EXPECT_EQ(rpcs.check_and_mutate_row, 1u);
  EXPECT_EQ(rpcs.repeated, 0u);
  EXPECT_EQ(rpcs.data(), 5u);
}

}  // namespace
}  // namespace percolator
