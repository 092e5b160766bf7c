// SPDX-License-Identifier: Apache-2.0

// Reading at a timestamp, step by step: src/txn/get.h.

#include "src/txn/get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Fault::Kind;

class GetTest : public StepsTest {
 protected:
  absl::StatusOr<std::vector<std::optional<Version>>> GetAll(const std::vector<WantedCell>& cells, uint64_t at) {
    return GetCells(other_.env(), Timestamp(at), cells, other_.deadline());
  }
};

// T7
TEST_F(GetTest, TheNewestAtOrBeforeTheTimestamp) {
  MustWrite("Bob", "10", 5, 6);
  MustWrite("Bob", "3", 7, 8);
  MustReadNothing("Bob", 5);
  MustRead("Bob", 6, "10");
  MustRead("Bob", 7, "10");
  MustRead("Bob", 8, "3");
  MustRead("Bob", 1'000'000, "3");
}

TEST_F(GetTest, ACellThatWasNeverWrittenIsAbsent) { MustReadNothing("Nobody", 9); }

TEST_F(GetTest, AnEmptyValueIsAValue) {
  MustWrite("Bob", "", 5, 6);
  MustRead("Bob", 6, "");
}

TEST_F(GetTest, ADeleteHidesOlderVersions) {
  MustWrite("Bob", "10", 5, 6);
  MustCommit(Begin(7, {Del("Bob")}), 8);
  MustRead("Bob", 7, "10");
  MustReadNothing("Bob", 8);
  MustWrite("Bob", "3", 9, 10);
  MustReadNothing("Bob", 9);
  MustRead("Bob", 10, "3");
}

// A marker is not a version and hides none.
TEST_F(GetTest, MarkersAreIgnored) {
  MustWrite("Bob", "10", 5, 6);
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  RollBack(t);
  MustRead("Bob", 9, "10");
}

TEST_F(GetTest, AVerifyRecordIsIgnored) {
  MustWrite("Bob", "10", 5, 6);
  MustCommit(Begin(7, {Relied("Bob", 6)}), 8);
  MustCommit(Begin(9, {Relied("Bob", 6)}), 10);
  MustCommit(Begin(9, {Relied("Joe", 0)}), 11);
  MustRead("Bob", 12, "10");
  MustRead("Bob", 8, "10");
  MustReadNothing("Joe", 12);
}

TEST_F(GetTest, AVerifiedLongValueIsFound) {
  MustCommit(Begin(5, {Put("Bob", std::string(1000, 'b'))}), 6);
  MustCommit(Begin(7, {Relied("Bob", 6)}), 8);
  MustRead("Bob", 9, std::string(1000, 'b'));
}

TEST_F(GetTest, AVerifiedDeleteIsADelete) {
  MustWrite("Bob", "10", 3, 4);
  MustCommit(Begin(5, {Del("Bob")}), 6);
  MustCommit(Begin(7, {Relied("Bob", 6)}), 8);
  MustReadNothing("Bob", 9);
}

TEST_F(GetTest, ManyCellsInOneRequest) {
  MustCommit(Begin(5, {Put("Bob", "10"), Put("Bob", "Bobby").Of("name"), Put("Joe", "2")}), 6);
  other_.wire().CountFromHere();
  const auto versions = GetAll(
      {{Cell("Joe")}, {{kTable, "Bob", "name"}}, {Cell("Nobody")}, {Cell("Bob")}, {{kTable, "Bob", "nothing"}}}, 9);
  ASSERT_THAT(versions, IsOk());
  EXPECT_EQ((*versions)[0]->value, "2");
  EXPECT_EQ((*versions)[1]->value, "Bobby");
  EXPECT_EQ((*versions)[2]->value, std::nullopt);
  EXPECT_EQ((*versions)[3]->value, "10");
  EXPECT_EQ((*versions)[3]->commit_ts, Timestamp(6));
  EXPECT_EQ((*versions)[4]->value, std::nullopt);
  EXPECT_EQ(other_.wire().CountOf("read"), 1u);
}

TEST_F(GetTest, LongValuesOfManyCellsAreLoadedInOneMore) {
  MustCommit(Begin(5, {Put("Bob", std::string(300, 'b')), Put("Joe", std::string(400, 'j')), Put("Ann", "1")}), 6);
  other_.wire().CountFromHere();
  const auto versions = GetAll({{Cell("Bob")}, {Cell("Joe")}, {Cell("Ann")}}, 9);
  ASSERT_THAT(versions, IsOk());
  EXPECT_EQ((*versions)[1]->value, std::string(400, 'j'));
  EXPECT_EQ((*versions)[1]->data_ts, Timestamp());
  EXPECT_EQ(other_.wire().CountOf("read"), 2u);
}

// --- Locks met by reads (T8).

TEST_F(GetTest, ALockOfALaterTransactionHidesNothing) {
  MustWrite("Bob", "10", 5, 6);
  MustPrewrite(Begin(9, {Put("Bob", "3")}));
  MustRead("Bob", 8, "10");
  EXPECT_EQ(world_.runtime.sleeps(), 0);
  EXPECT_EQ(Cells("Bob"), "lock@9 put 3 primary | write@6 put 10 from 5");
}

TEST_F(GetTest, ALiveLockIsWaitedFor) {
  MustWrite("Bob", "10", 5, 6);
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  world_.runtime.Start([&] {
    world_.runtime.Sleep(Duration(60));
    ASSERT_TRUE(ArriveCommit(t, "Bob", 8));
  });
  MustRead("Bob", 9, "3");
  EXPECT_GT(world_.runtime.sleeps(), 1);
  MustRead("Bob", 7, "10");
}

// The same if the commit is later than the reader's timestamp: the wait was not needed, but the reader could not know.
TEST_F(GetTest, ALockThatCommitsAfterTheSnapshotHidesNothing) {
  MustWrite("Bob", "10", 5, 6);
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  world_.runtime.Start([&] {
    world_.runtime.Sleep(Duration(60));
    ASSERT_TRUE(ArriveCommit(t, "Bob", 10));
  });
  MustRead("Bob", 9, "10");
}

// T14: the first reader after the lease.
TEST_F(GetTest, AStuckLockIsRemovedWhenItsLeasePasses) {
  MustWrite("Bob", "10", 5, 6);
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  MustRead("Bob", 9, "10");
  EXPECT_GE(world_.runtime.Elapsed(), Duration(kLease));
  EXPECT_LT(world_.runtime.Elapsed(), Duration(10 * kLease));
  EXPECT_EQ(Cells("Bob"), "rollback@7 | write@6 put 10 from 5");
}

TEST_F(GetTest, TheLockOfADeadClientIsRemovedAtOnce) {
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
  me_.Die();
  MustReadNothing("Bob", 9);
  EXPECT_EQ(world_.runtime.sleeps(), 0);
}

TEST_F(GetTest, ACommittedTransactionIsRolledForwardByItsReader) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", std::string(300, 'j'))});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  MustRead("Joe", 9, std::string(300, 'j'));
  EXPECT_EQ(Cells("Joe"), "write@8 put long from 7 | data@7 (300 bytes)");
  EXPECT_EQ(other_.env().counters.rolled_forward, 1u);
  EXPECT_EQ(other_.env().counters.foreign_locks_found, 1u);
}

TEST_F(GetTest, AReadThatTimesOutNamesTheLockAndTheTime) {
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
  Client patient(&world_, [] {
    ClusterOptions options = Options();
    options.lock_lease = std::chrono::hours(1);
    return options;
  }());
  const absl::StatusOr<std::optional<std::string>> read = Read(patient, Cell("Bob"), 9);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("by transaction 7"));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("Bob"));
  EXPECT_THAT(std::string(read.status().message()), ::testing::ContainsRegex("waited [1-9][0-9]* ms"));
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
}

// Only locked cells are read again.
TEST_F(GetTest, OnlyLockedCellsAreReadAgain) {
  MustCommit(Begin(5, {Put("Ann", "1"), Put("Bob", "2"), Put("Joe", "3")}), 6);
  MustPrewrite(Begin(7, {Put("Bob", "4")}));
  me_.Die();
  other_.wire().CountFromHere();
  const auto versions = GetAll({{Cell("Ann")}, {Cell("Bob")}, {Cell("Joe")}}, 9);
  ASSERT_THAT(versions, IsOk());
  EXPECT_EQ((*versions)[0]->value, "1");
  EXPECT_EQ((*versions)[1]->value, "2");
  EXPECT_EQ((*versions)[2]->value, "3");
}

// --- Cells that are only predicted: for prefetching.

TEST_F(GetTest, ALockedPredictedCellIsSkipped) {
  MustWrite("Bob", "10", 5, 6);
  MustPrewrite(Begin(7, {Put("Joe", "9")}));
  const auto versions = GetAll({{Cell("Bob"), true}, {Cell("Joe"), false}}, 9);
  ASSERT_THAT(versions, IsOk());
  EXPECT_EQ((*versions)[0]->value, "10");
  EXPECT_FALSE((*versions)[1].has_value());
  EXPECT_EQ(world_.runtime.sleeps(), 0);
}

TEST_F(GetTest, TheLongValueOfAPredictedCellIsNotLoaded) {
  MustCommit(Begin(5, {Put("Bob", "10"), Put("Joe", std::string(300, 'j'))}), 6);
  const auto versions = GetAll({{Cell("Bob"), true}, {Cell("Joe"), false}}, 9);
  ASSERT_THAT(versions, IsOk());
  EXPECT_EQ((*versions)[1]->value, std::nullopt);
  EXPECT_EQ((*versions)[1]->data_ts, Timestamp(5));
  EXPECT_EQ((*versions)[1]->commit_ts, Timestamp(6));
}

// --- The safe point (G3).

TEST_F(GetTest, AReadBelowTheSafePointFails) {
  MustWrite("Bob", "10", 5, 6);
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(8)), IsOk());
  const auto read = Read(other_, Cell("Bob"), 7);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_TRUE(IsSnapshotTooOld(read.status()));
  MustRead("Bob", 8, "10");
}

TEST_F(GetTest, TheSafePointIsCheckedAfterTheRead) {
  MustWrite("Bob", "10", 5, 6);
  other_.wire().CountFromHere();
  other_.wire().After(1, [&] { ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(8)), IsOk()); });
  EXPECT_THAT(Read(other_, Cell("Bob"), 7), StatusIs(absl::StatusCode::kOutOfRange));
}

// G5: if a long value was collected, the snapshot is too old; it is not data loss.
TEST_F(GetTest, ALongValueCollectedDuringAReadMeansTooOld) {
  MustCommit(Begin(5, {Put("Bob", std::string(300, 'b'))}), 6);
  other_.wire().CountFromHere();
  other_.wire().After(2, [&] {  // the record was read, and the safe point too
    ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(8)), IsOk());
    world_.store->Mutate({{kTable,
                           "Bob",
                           {},
                           {Mutation::Erase(Family::kData, kColumn, TimestampRange::All()),
                            Mutation::Erase(Family::kWrite, kColumn, TimestampRange::All())}}});
  });
  EXPECT_THAT(Read(other_, Cell("Bob"), 7), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(GetTest, AMissingLongValueIsDataLoss) {
  MustCommit(Begin(5, {Put("Bob", std::string(300, 'b'))}), 6);
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Erase(Family::kData, kColumn, TimestampRange::All())}}});
  const auto read = Read(other_, Cell("Bob"), 7);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("Bob"));
}

// --- The store.

TEST_F(GetTest, AnUnreachableStoreIsTriedAgain) {
  MustWrite("Bob", "10", 5, 6);
  other_.wire().CountFromHere();
  other_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  other_.wire().FailAt(2, {.kind = Kind::kLoseReply});
  MustRead("Bob", 7, "10");
  EXPECT_EQ(world_.runtime.sleeps(), 2);
}

TEST_F(GetTest, AReadFromAnUnreachableStoreFailsAtTheDeadline) {
  other_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(Read(other_, Cell("Bob"), 7), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
  EXPECT_LT(world_.runtime.Elapsed(), 2 * Options().call_timeout);
}

TEST_F(GetTest, DamageIsReportedAndNotGuessed) {
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Set(Family::kWrite, kColumn, Timestamp(6), "\x01")}}});
  EXPECT_THAT(Read(other_, Cell("Bob"), 7), StatusIs(absl::StatusCode::kDataLoss));
  world_.store->Mutate({{kTable, "Joe", {}, {Mutation::Set(Family::kWrite, kColumn, Timestamp(6), "\x02")}}});
  EXPECT_THAT(Read(other_, Cell("Joe"), 7), StatusIs(absl::StatusCode::kFailedPrecondition));
  world_.store->Mutate({{kTable, "Ann", {}, {Mutation::Set(Family::kLock, kColumn, Timestamp(6), "")}}});
  EXPECT_THAT(Read(other_, Cell("Ann"), 7), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(GetTest, ADamageReportNamesTheCellAndTheRemedy) {
  world_.store->Mutate({{kTable, "Bob\n", {}, {Mutation::Set(Family::kWrite, kColumn, Timestamp(6), "garbage")}}});
  const absl::Status status = Read(other_, Cell("Bob\n"), 7).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr(StrCat("table ", kTable, ", row \"Bob\\n\", column \"", kColumn,
                                                "\", family write, timestamp 6")),
                               HasSubstr("percolator check")));
}

TEST_F(GetTest, AMissingTableIsNotFound) {
  EXPECT_THAT(Read(other_, {"nowhere", "Bob", "bal"}, 7), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(GetTest, NamesOfAnyBytes) {
  const std::string row("\0\xff row", 6);
  const std::string column("\xff\0", 2);
  MustCommit(Begin(5, {Put(row, "v").Of(column), Put(row, "w").Of("")}), 6);
  EXPECT_EQ(Read(other_, {kTable, row, column}, 7).value(), "v");
  EXPECT_EQ(Read(other_, {kTable, row, ""}, 7).value(), "w");
}

}  // namespace
}  // namespace percolator
