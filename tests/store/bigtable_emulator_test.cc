// SPDX-License-Identifier: Apache-2.0

// The store in Bigtable, on Google's emulator and on our own server, beyond the conformance suite: many columns in one
// row, several processes on one instance, and tables left unfinished by a crash.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/server.h"
#include "src/base/strings.h"
#include "src/store/bigtable/bigtable_store.h"
#include "src/store/bigtable/catalog.h"
#include "src/store/bigtable/client.h"
#include "tests/processes/emulator.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kNone = Condition::Quantifier::kNone;
constexpr auto kAll = Condition::Quantifier::kAll;

class BigtableInstanceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const absl::Status started = Start(); !started.ok()) GTEST_SKIP() << started;
    options_.project = "p";
    options_.instance = "i";
    options_.safe_point_age = std::chrono::milliseconds(50);
    store_ = OpenBigtableStore(options_).value();
    other_ = OpenBigtableStore(options_).value();
    client_ = BigtableClient::Open(options_).value();
    catalog_ = std::make_unique<BigtableCatalog>(client_.get());
  }

  absl::Status Start() {
    if (GetParam()) {
      server_ = Server::Start({.listen = "127.0.0.1:0"}).value();
      options_.endpoint = StrCat("127.0.0.1:", server_->port());
      return absl::OkStatus();
    }
    absl::StatusOr<std::unique_ptr<Emulator>> emulator = Emulator::Start();
    if (!emulator.ok()) return emulator.status();
    emulator_ = *std::move(emulator);
    options_.endpoint = emulator_->target();
    return absl::OkStatus();
  }
  void End() {
    emulator_.reset();
    server_.reset();
  }

  static bool Applied(Store* store, const RowMutation& mutation) {
    const absl::StatusOr<MutateResult> result = store->Mutate({mutation})[0];
    EXPECT_THAT(result, IsOk());
    return result.ok() && *result == MutateResult::kApplied;
  }

  static RowMutation Set(const std::string& table) {
    return {table, "r", {}, {Mutation::Set(Family::kData, "c", Timestamp(1), "v")}};
  }

  static std::string Read(Store* store, const std::string& table) {
    const absl::StatusOr<std::vector<Row>> rows = store->Read({{table, "r", {{Family::kData, std::nullopt}}}});
    return rows.ok() ? ToText(*rows) : std::string(absl::StatusCodeToString(rows.status().code()));
  }

  BigtableStoreOptions options_;
  std::unique_ptr<Emulator> emulator_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Store> store_, other_;  // like those of two processes
  std::unique_ptr<BigtableClient> client_;
  std::unique_ptr<BigtableCatalog> catalog_;
};

// Enough that the condition is a pattern: see src/store/bigtable/filters.h. (A thousand are possible, but the emulator
// compiles the pattern again for every cell.)
TEST_P(BigtableInstanceTest, HundredsOfColumnsOfARowArePrewrittenAndCommitted) {
  constexpr int kColumns = 250;
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  const auto column = [](int i) { return absl::StrFormat("a.column-%04d", i); };
  RowMutation prewrite{"t", "r", {kNone, {}}, {}}, commit{"t", "r", {kAll, {}}, {}};
  const Timestamp start(10), end(20);
  for (int i = 0; i < kColumns; ++i) {
    prewrite.condition.cells.push_back({Family::kWrite, column(i), TimestampRange::From(start)});
    prewrite.condition.cells.push_back({Family::kLock, column(i), TimestampRange::All()});
    prewrite.mutations.push_back(Mutation::Set(Family::kLock, column(i), start, ""));
    commit.condition.cells.push_back({Family::kLock, column(i), TimestampRange::Exactly(start)});
    commit.mutations.push_back(Mutation::Erase(Family::kLock, column(i), TimestampRange::Exactly(start)));
    commit.mutations.push_back(Mutation::Set(Family::kWrite, column(i), end, ""));
  }
  EXPECT_FALSE(Applied(store_.get(), commit)) << "nothing is locked";
  // Neighbours that a careless pattern would match, and an older write, are not obstacles.
  const RowMutation neighbours{"t",
                               "r",
                               {},
                               {Mutation::Set(Family::kLock, "aXcolumn-0001", Timestamp(5), ""),
                                Mutation::Set(Family::kLock, column(7) + "0", Timestamp(5), ""),
                                Mutation::Set(Family::kWrite, column(7), Timestamp(5), ""),
                                Mutation::Set(Family::kData, column(7), Timestamp(50), "")}};
  ASSERT_TRUE(Applied(store_.get(), neighbours));
  EXPECT_TRUE(Applied(store_.get(), prewrite));
  EXPECT_FALSE(Applied(store_.get(), prewrite)) << "all are locked";

  RowMutation unlock{"t", "r", {}, {Mutation::Erase(Family::kLock, column(200), TimestampRange::All())}};
  ASSERT_TRUE(Applied(store_.get(), unlock));
  EXPECT_FALSE(Applied(store_.get(), commit)) << "one lock is missing, though there are others in the row";
  EXPECT_FALSE(Applied(store_.get(), prewrite)) << "but the others are there";
  unlock.mutations = {Mutation::Set(Family::kLock, column(200), start, "")};
  ASSERT_TRUE(Applied(store_.get(), unlock));
  EXPECT_TRUE(Applied(store_.get(), commit));
  EXPECT_FALSE(Applied(store_.get(), commit));
  EXPECT_FALSE(Applied(store_.get(), prewrite)) << "newer writes";

  std::vector<Selector> selectors;
  for (int i = 0; i < kColumns; ++i) {
    selectors.push_back({Family::kLock, column(i), TimestampRange::UpTo(end), 1});
    selectors.push_back({Family::kWrite, column(i), TimestampRange::UpTo(end), 1});
  }
  const absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "r", selectors}});
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->front().cells.size(), kColumns);
  for (int i = 0; i < kColumns; ++i) EXPECT_EQ(rows->front().cells[i].column, column(i));
}

TEST_P(BigtableInstanceTest, ATableRecreatedByOthersIsTheNewOne) {
  ASSERT_THAT(store_->CreateTable({"t", "first"}), IsOk());
  ASSERT_TRUE(Applied(other_.get(), Set("t")));
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  EXPECT_EQ(Read(other_.get(), "t"), "NOT_FOUND");
  ASSERT_THAT(store_->CreateTable({"t", "second"}), IsOk());
  EXPECT_EQ(Read(other_.get(), "t"), "r{}");
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  ASSERT_THAT(store_->CreateTable({"t", "third"}), IsOk());
  ASSERT_TRUE(Applied(other_.get(), Set("t"))) << "with its knowledge of the second";
  EXPECT_EQ(Read(store_.get(), "t"), "r{data:c@1=v}");
  EXPECT_THAT(*other_->ListTables(), ElementsAre(TableInfo{"t", "third"}));
}

TEST_P(BigtableInstanceTest, ForeignTablesAreIgnored) {
  ASSERT_THAT(client_->CreateTable("theirs"), IsOk());
  EXPECT_THAT(*store_->ListTables(), IsEmpty());
  EXPECT_EQ(Read(store_.get(), "theirs"), "NOT_FOUND");
  EXPECT_THAT(store_->DropTable("theirs"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->CreateTable({"theirs", ""}), IsOk()) << "it is another one";
  EXPECT_THAT(client_->DeleteTable("theirs"), IsOk());
}

TEST_P(BigtableInstanceTest, ATableThatACrashLeftUnfinishedIsFinished) {
  ASSERT_THAT(client_->CreateTable(BigtableTableId("t", 1)), IsOk());  // then the process died
  EXPECT_THAT(*store_->ListTables(), IsEmpty());
  EXPECT_THAT(store_->DropTable("t"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->CreateTable({"t", "schema"}), IsOk());
  EXPECT_TRUE(Applied(store_.get(), Set("t")));
  EXPECT_THAT(*store_->ListTables(), ElementsAre(TableInfo{"t", "schema"}));
}

// The part of DropTable that writes to the catalog, without the rest.
TEST_P(BigtableInstanceTest, TheRestOfADroppedTableIsDeletedAfterACrash) {
  for (const bool create : {false, true}) {
    const std::string name = create ? "created" : "dropped";
    ASSERT_THAT(store_->CreateTable({name, ""}), IsOk());
    ASSERT_TRUE(Applied(store_.get(), Set(name)));
    const RowMutation half_dropped{"",
                                   name,
                                   {},
                                   {Mutation::Erase(Family::kData, "schema", TimestampRange::All()),
                                    Mutation::Set(Family::kData, "dropped", Timestamp(1), ""),
                                    Mutation::Set(Family::kData, "delete", Timestamp(1), "")}};
    ASSERT_THAT(client_->Mutate("percolator-catalog", {&half_dropped})[0], IsOk());
    EXPECT_THAT(*other_->ListTables(), IsEmpty());
    EXPECT_EQ(Read(other_.get(), name), "NOT_FOUND");
    if (create) {
      EXPECT_THAT(other_->CreateTable({name, ""}), IsOk());
      EXPECT_EQ(Read(other_.get(), name), "r{}");
    } else {
      EXPECT_THAT(other_->DropTable(name), StatusIs(absl::StatusCode::kNotFound));
    }
    EXPECT_THAT(client_->DeleteTable(BigtableTableId(name, 1)), StatusIs(absl::StatusCode::kNotFound)) << "it was left";
  }
}

TEST_P(BigtableInstanceTest, LongNamesAreShortenedAndDistinguished) {
  const std::string stem(63, 'n');
  for (const std::string& name :
       {stem + "a", stem + "b", std::string("-x"), std::string(38, 'y'), std::string(39, 'y')}) {
    EXPECT_LE(BigtableTableId(name, 99'999'999'999).size(), 50u);
    EXPECT_NE(BigtableTableId(name, 1).front(), '-');
    ASSERT_THAT(store_->CreateTable({name, ""}), IsOk());
    EXPECT_EQ(Read(store_.get(), name), "r{}");
    ASSERT_TRUE(Applied(store_.get(), Set(name)));
  }
}

TEST_P(BigtableInstanceTest, ASafePointOfOthersCountsOnceItIsRaised) {
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  const auto lock_at = [&](uint64_t ts) {
    return other_->Mutate({{"t", "r", {}, {Mutation::Set(Family::kLock, "c", Timestamp(ts), "")}}})[0].status();
  };
  for (uint64_t ts = 10; ts < 20; ++ts) {
    ASSERT_THAT(lock_at(ts), IsOk()) << "and knows the safe point, as it is now";
    ASSERT_THAT(store_->RaiseSafePoint(Timestamp(ts)), IsOk());
    ASSERT_THAT(lock_at(ts), StatusIs(absl::StatusCode::kOutOfRange));
    ASSERT_EQ(other_->SafePoint().value(), Timestamp(ts));
  }
  EXPECT_THAT(store_->RaiseSafePoint(kLastWireTimestamp.Next()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(BigtableInstanceTest, AMissingServerIsUnavailable) {
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  End();
  EXPECT_THAT(store_->Mutate({Set("t")})[0], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Read(store_.get(), "t"), "UNAVAILABLE");
}

INSTANTIATE_TEST_SUITE_P(Places, BigtableInstanceTest, ::testing::Bool(),
                         [](const auto& param_info) { return param_info.param ? "serve" : "emulator"; });

}  // namespace
}  // namespace percolator
