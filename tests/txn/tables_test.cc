// SPDX-License-Identifier: Apache-2.0

// Tables, their schemas, and the effect of dropping a table on transactions: src/txn/tables.h, src/cluster/cluster.cc.

#include "src/txn/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Fault::Kind;

class TablesTest : public ClusterTest {
 protected:
  Tables tables_{cluster_.wire().store()};
};

TEST_F(TablesTest, AnyColumnOfATableMayBeWritten) {
  EXPECT_THAT(tables_.CheckWritable(kTable, "bal"), IsOk());
  EXPECT_THAT(tables_.CheckWritable(kTable, ""), IsOk());
  EXPECT_THAT(tables_.CheckWritable(kTable, "\xff"), IsOk());
}

TEST_F(TablesTest, ReservedNamesMayNotBeWritten) {
  const absl::Status status = tables_.CheckWritable(kTable, std::string("\0rollback", 9));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reserved"));
}

TEST_F(TablesTest, NotifyOnlyColumnsMayNotBeWritten) {
  ASSERT_THAT(world_.store->CreateTable({"docs", EncodeSchema({.notify_only_columns = {"dirty", "hot"}})}), IsOk());
  EXPECT_THAT(tables_.CheckWritable("docs", "contents"), IsOk());
  const absl::Status status = tables_.CheckWritable("docs", "hot");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("notify-only"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("hot"));
}

TEST_F(TablesTest, AMissingTableIsReportedWithTheRemedy) {
  const absl::Status status = tables_.CheckWritable("nowhere", "bal");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(status.message()), HasSubstr("CreateTable"));
}

TEST_F(TablesTest, TheSchemaOfAKnownTableIsNotReadAgain) {
  ASSERT_THAT(tables_.CheckWritable(kTable, "bal"), IsOk());
  cluster_.wire().CountFromHere();
  ASSERT_THAT(tables_.CheckWritable(kTable, "name"), IsOk());
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
  tables_.Forget();
  ASSERT_THAT(tables_.CheckWritable(kTable, "name"), IsOk());
  EXPECT_EQ(cluster_.wire().CountOf("tables"), 1u);
}

// Another process may have made the table meanwhile, so the first write to a table reads the list of tables. A write
// cannot be repeated, because its error fails the transaction. So that read is retried, as others are.
TEST_F(TablesTest, AWriteOutlastsAPassingFailureToListTheTables) {
  world_.store->failing_lists = 3;
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Set({kTable, "Bob", kColumn}, "3"); }), IsOk());
  EXPECT_EQ(world_.store->failing_lists, 0);
}

TEST_F(TablesTest, AListReadBeforeATableWasRecreatedIsNotCached) {
  world_.store->after_list = [&] {
    ASSERT_THAT(world_.store->DropTable(kTable), IsOk());
    ASSERT_THAT(world_.store->CreateTable({kTable, EncodeSchema({.notify_only_columns = {"n"}})}), IsOk());
    tables_.Forget();
  };
  EXPECT_THAT(tables_.CheckWritable(kTable, "n"), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Regression: the list was discarded each time, and the table counted as missing.
TEST_F(TablesTest, ConstantChangesOfOtherTablesDoNotHideATable) {
  std::function<void()> change = [&] {
    tables_.Forget();
    world_.store->after_list = change;
  };
  world_.store->after_list = change;
  EXPECT_THAT(tables_.CheckWritable(kTable, "bal"), IsOk());
  EXPECT_THAT(tables_.CheckWritable("missing", "bal"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TablesTest, ATableMadeByAnotherProcessIsFound) {
  ASSERT_THAT(tables_.CheckWritable(kTable, "bal"), IsOk());
  EXPECT_THAT(tables_.CheckWritable("later", "bal"), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(world_.store->CreateTable({"later", EncodeSchema({})}), IsOk());
  EXPECT_THAT(tables_.CheckWritable("later", "bal"), IsOk());
}

TEST_F(TablesTest, ASchemaOfANewerFormatIsRefused) {
  ASSERT_THAT(world_.store->CreateTable({"future", "\x02whatever"}), IsOk());
  EXPECT_THAT(tables_.CheckWritable("future", "bal"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TablesTest, AnErrorOfTheStoreIsReturned) {
  cluster_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(tables_.CheckWritable(kTable, "bal"), StatusIs(absl::StatusCode::kUnavailable));
}

// --- On a cluster.

TEST_F(TablesTest, TablesAreMadeListedAndDropped) {
  EXPECT_THAT(cluster_->CreateTable("zoo"), IsOk());
  EXPECT_THAT(cluster_->ListTables().value(), ElementsAre(kTable, "zoo"));
  EXPECT_THAT(cluster_->CreateTable("zoo"), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(cluster_->CreateTable("bad name"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster_->DropTable("zoo"), IsOk());
  EXPECT_THAT(cluster_->DropTable("zoo"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster_->ListTables().value(), ElementsAre(kTable));
}

// Clients of a server may keep tables of their own in the store.
TEST_F(TablesTest, ATableWithAnotherProgramsSchemaIsLeftAlone) {
  const std::string schema =
      "\xff"
      "other:";
  ASSERT_THAT(world_.store->CreateTable({"theirs", schema}), IsOk());
  EXPECT_THAT(cluster_->ListTables().value(), ElementsAre(kTable));
  EXPECT_THAT(tables_.CheckWritable("theirs", "a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster_->EnsureTable("theirs"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"theirs\": its schema was not written by")));
  EXPECT_THAT(cluster_->CollectGarbage(), IsOk());
}

TEST_F(TablesTest, ADroppedTableIsUnknownAtOnceAndItsSuccessorHasItsOwnSchema) {
  ASSERT_THAT(cluster_->CreateTable("zoo"), IsOk());
  MustSet({Put("a", "1").In("zoo")});
  ASSERT_THAT(cluster_->DropTable("zoo"), IsOk());
  const auto set = [](std::string_view column) { return [column](ReadWrite& t) { t.Set({"zoo", "a", column}, "2"); }; };
  EXPECT_THAT(cluster_->Transact(set("bal")), StatusIs(absl::StatusCode::kNotFound));
  Transaction t(*cluster_);
  EXPECT_THAT(t.Get({"zoo", "a", "bal"}), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(cluster_->CreateTable("zoo", {.notify_only_columns = {"bal"}}), IsOk());
  EXPECT_THAT(cluster_->Transact(set("bal")), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster_->Transact(set("name")), IsOk());
}

TEST_F(TablesTest, NotifyOnlyColumnsCannotBeWrittenDeletedOrVerified) {
  ASSERT_THAT(cluster_->CreateTable("docs", {.notify_only_columns = {"hot"}}), IsOk());
  const auto is_refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("notify-only"));
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Set({"docs", "a", "hot"}, "1"); }), is_refused);
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Delete({"docs", "a", "hot"}); }), is_refused);
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Verify({"docs", "a", "hot"}); }), is_refused);
}

// A transaction with a write in a dropped table commits nothing anywhere.
TEST_F(TablesTest, ACommitToADroppedTableAborts) {
  for (const bool one_step : {true, false}) {
    Process process(&world_, Options(one_step));
    ASSERT_THAT(cluster_->CreateTable("zoo"), IsOk());
    Transaction t(*process);
    Buffer(t, {Put("a", "1"), Put("a", "1").In("zoo")});
    ASSERT_THAT(cluster_->DropTable("zoo"), IsOk());
    const CommitResult result = t.Commit();
    ExpectOutcome(result, CommitResult::Outcome::kAborted);
    EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kNotFound));
    EXPECT_EQ(Now("a"), std::nullopt);
  }
}

// --- DropTable and the locks that would lose their verdicts.

class DropTableTest : public ClusterTest {
 protected:
  DropTableTest() : ClusterTest(Options(false)) { EXPECT_THAT(cluster_->CreateTable("aaa"), IsOk()); }

  // A process dies with the primary in "aaa" and a secondary in "accounts".
  void Strand(bool committed, bool session_ends = true) {
    auto dying = std::make_unique<Process>(&world_, Options(false));
    Transaction t(**dying);
    Buffer(t, {Put("p", "1").In("aaa"), Put("Bob", "3"), Put("q", "1").In("aaa")});
    dying->wire().FailAt(kCommitsPrimary, {.kind = committed ? Kind::kDieAfter : Kind::kDieBefore});
    (void)t.Commit();
    ASSERT_TRUE(dying->wire().dead());
    ASSERT_THAT(AllLocks(world_.store.get()), SizeIs(committed ? 2 : 3));
    dying->Die(session_ends);
    dying_ = std::move(dying);
  }

  std::unique_ptr<Process> dying_;
};

TEST_F(DropTableTest, ACommittedSecondaryElsewhereIsRolledForwardFirst) {
  Strand(true);
  ASSERT_THAT(cluster_->DropTable("aaa"), IsOk());
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(Now("Bob"), "3");
}

TEST_F(DropTableTest, AnUndecidedTransactionIsRolledBackWhetherItLivesOrNot) {
  Strand(false, false);
  ASSERT_THAT(cluster_->DropTable("aaa"), IsOk());
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

// The reverse: the primary is elsewhere, and a stranded secondary is dropped.
TEST_F(DropTableTest, ADroppedSecondaryDoesNotMatter) {
  Strand(true);
  ASSERT_THAT(cluster_->DropTable(kTable), IsOk());
  EXPECT_THAT(AllLocks(world_.store.get()), ElementsAre(::testing::StartsWith("aaa/q")));
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  EXPECT_EQ(snapshot->Get({"aaa", "q", kColumn}).value(), "1");
}

TEST_F(DropTableTest, OwnSecondariesUnderWayAreFinishedFirst) {
  MustSet({Put("p", "1").In("aaa"), Put("Bob", "3")});
  EXPECT_THAT(AllLocks(world_.store.get()), SizeIs(1));
  ASSERT_THAT(cluster_->DropTable("aaa"), IsOk());
  EXPECT_EQ(Now("Bob"), "3");
}

// A lock that is met after its primary's table was dropped belongs to a transaction that did not commit.
TEST_F(DropTableTest, ALockWhosePrimaryIsDroppedIsRolledBack) {
  Strand(false);
  ASSERT_THAT(world_.store->DropTable("aaa"),
              IsOk());  // like another process that did not see the lock
  EXPECT_EQ(Now("Bob"), std::nullopt);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

TEST_F(DropTableTest, WhenLocksCannotBeSettledTheTableStays) {
  Strand(true);
  cluster_.wire().CountFromHere();
  cluster_.wire().FailFrom(2, {.kind = Kind::kRefused, .error = absl::DataLossError("I/O error")});
  EXPECT_THAT(cluster_->DropTable("aaa"), StatusIs(absl::StatusCode::kDataLoss));
  cluster_.wire().ForgetFaults();
  EXPECT_THAT(cluster_->ListTables().value(), ElementsAre("aaa", kTable));
}

}  // namespace
}  // namespace percolator
