// SPDX-License-Identifier: Apache-2.0

// The first phase, step by step: src/txn/prewrite.h.

#include "src/txn/prewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Fault::Kind;

class PrewriteTest : public StepsTest {};

TEST_F(PrewriteTest, LocksEveryCell) {
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 3 primary");
  EXPECT_EQ(Cells("Joe"), "lock@7 put 9 of Bob");
}

TEST_F(PrewriteTest, ARowIsLockedInOneMutation) {
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Bob", "Bobby").Of("name"), Put("Joe", "9"), Put("Ann", "1")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 3 primary | lock name@7 put Bobby of Bob");
  EXPECT_EQ(me_.wire().CountOf("mutate"), 1u);
  EXPECT_EQ(me_.wire().calls()[0].rows, 3u);
}

TEST_F(PrewriteTest, LongValuesGoToTheDataAndShortOnesIntoTheLock) {
  MustPrewrite(Begin(7, {Put("Bob", std::string(kInlineBytes, 'b')), Put("Joe", std::string(kInlineBytes + 1, 'j'))}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put (256 bytes) primary");
  EXPECT_EQ(Cells("Joe"), "lock@7 put long of Bob | data@7 (257 bytes)");
}

TEST_F(PrewriteTest, DeletesAndVerifiesLockAsWell) {
  MustPrewrite(Begin(7, {Del("Bob"), Relied("Joe", 5)}));
  EXPECT_EQ(Cells("Bob"), "lock@7 delete primary");
  EXPECT_EQ(Cells("Joe"), "lock@7 verify 5 of Bob");
}

// T5: the first to commit wins.
TEST_F(PrewriteTest, ANewerWriteIsAConflict) {
  MustWrite("Joe", "2", 8, 9);
  ExpectConflict(TryPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9")})), Conflict::Kind::kNewerWrite, "Joe", 8, 9);
}

TEST_F(PrewriteTest, AnOlderWriteIsNotAConflict) {
  MustWrite("Bob", "10", 5, 6);
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 3 primary | write@6 put 10 from 5");
}

// Deletes conflict as puts do, and so do verifies.
TEST_F(PrewriteTest, NewerDeletesAndVerifiesAreConflictsToo) {
  MustCommit(Begin(8, {Del("Bob"), Relied("Joe", 0)}), 9);
  ExpectConflict(TryPrewrite(Begin(7, {Put("Bob", "3")})), Conflict::Kind::kNewerWrite, "Bob", 8, 9);
  ExpectConflict(TryPrewrite(Begin(6, {Put("Joe", "9")})), Conflict::Kind::kNewerWrite, "Joe", 8, 9);
  ExpectConflict(TryPrewrite(Begin(5, {Relied("Joe", 0)})), Conflict::Kind::kNewerWrite, "Joe", 8, 9);
}

// Another column of the row is another cell.
TEST_F(PrewriteTest, OtherColumnsOfTheRowDoNotMatter) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Bob", "x").Of("locked")}));
  MustCommit(Begin(8, {Put("Bob", "y").Of("written")}), 9);
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
}

// T4: one lock per cell, whichever of the two started first.
TEST_F(PrewriteTest, ALiveLockIsAConflictAtOnce) {
  world_.oracle.SetNext(10);
  MustPrewriteBy(other_, BeginBy(other_, 7, {Put("Bob", "1")}));
  ExpectConflict(TryPrewrite(Begin(8, {Put("Bob", "3")})), Conflict::Kind::kLocked, "Bob", 7);
  ExpectConflict(TryPrewrite(Begin(6, {Put("Bob", "3")})), Conflict::Kind::kLocked, "Bob", 7);
  EXPECT_EQ(world_.runtime.sleeps(), 0);
  EXPECT_EQ(Cells("Bob"), "lock@7 put 1 primary");
}

// A blind writer never reads, so its prewrite resolves the locks.
TEST_F(PrewriteTest, TheLockOfADeadClientIsRolledBack) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Joe", "1"), Put("Bob", "1")}));
  other_.Die();
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 3 primary | rollback@5");
  EXPECT_EQ(Cells("Joe"), "rollback@5");
}

TEST_F(PrewriteTest, ALockWhoseLeasePassedIsRolledBackThoughItsSessionLives) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Bob", "1")}));
  PassLease();
  MustPrewrite(Begin(200, {Put("Bob", "3")}));
  EXPECT_EQ(Cells("Bob"), "lock@200 put 3 primary | rollback@5");
}

// The lock of a transaction that committed before our start is rolled forward, and is not a conflict.
TEST_F(PrewriteTest, TheLockOfACommittedTransactionIsRolledForward) {
  const Writes t = Begin(5, {Put("Joe", "9"), Put("Bob", "3")});
  MustPrewrite(t);
  MustCommitPrimary(t, 6);
  MustPrewriteBy(other_, BeginBy(other_, 7, {Put("Bob", "4")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 4 primary | write@6 put 3 from 5");
}

// After it was rolled forward it may be a conflict.
TEST_F(PrewriteTest, TheLockOfATransactionThatCommittedAfterOurStartIsAConflict) {
  const Writes t = Begin(5, {Put("Joe", "9"), Put("Bob", "3")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  ExpectConflict(TryPrewriteBy(other_, BeginBy(other_, 7, {Put("Bob", "4")})), Conflict::Kind::kNewerWrite, "Bob", 5,
                 8);
}

// T11: networks may duplicate a request.
TEST_F(PrewriteTest, ASecondRequestChangesNothing) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", std::string(300, 'j'))});
  MustPrewrite(t);
  const std::string bob = Cells("Bob");
  const std::string joe = Cells("Joe");
  MustPrewrite(t);
  EXPECT_EQ(Cells("Bob"), bob);
  EXPECT_EQ(Cells("Joe"), joe);
}

// T11: it must not lock again what it has committed.
TEST_F(PrewriteTest, AfterItsOwnCommitNothingIsLockedAgain) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustCommit(t, 8);
  EXPECT_THAT(TryPrewrite(t), IsOk());
  EXPECT_THAT(Locks(), IsEmpty());
  MustCommitPrimary(t, 8);  // the client's next step: the answer is the old decision
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
}

// T11: the marker stops a late prewrite.
TEST_F(PrewriteTest, AfterItsRollbackItIsRefused) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustPrewrite(t);
  RollBack(t);
  ExpectConflict(TryPrewrite(t), Conflict::Kind::kRolledBack, "Bob");
  EXPECT_FALSE(ArrivePrewrite(t, "Joe"));
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// The marker of another transaction is not a write.
TEST_F(PrewriteTest, MarkersOfOthersAreNotAConflict) {
  const Writes rolled_back = Begin(8, {Put("Bob", "1")});
  MustPrewrite(rolled_back);
  RollBack(rolled_back);
  MustPrewrite(Begin(7, {Put("Bob", "3")}));
  EXPECT_EQ(Cells("Bob"), "lock@7 put 3 primary | rollback@8");
}

TEST_F(PrewriteTest, ALostRequestIsSentAgain) {
  me_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  EXPECT_THAT(Locks(), SizeIs(2));
  EXPECT_EQ(world_.runtime.sleeps(), 1);
}

TEST_F(PrewriteTest, AfterALostReplyTheOutcomeIsFoundOut) {
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply, .rows = 0b10});
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  EXPECT_THAT(Locks(), SizeIs(2));
}

// T6: a timestamp that the store has drawn with the locks may be the commit timestamp.
TEST_F(PrewriteTest, TheLatestTimestampThatCameWithTheLocksIsReturned) {
  me_.wire().DrawWithLocks();
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  const auto drawn = Prewrite(me_.env(), t, me_.deadline());
  const Timestamp next = world_.oracle.GetTimestamp().value();
  EXPECT_THAT(drawn, IsOkAndHolds(Timestamp(next.value() - 1)));
  EXPECT_THAT(Prewrite(other_.env(), BeginBy(other_, 8, {Put("Ann", "1")}), other_.deadline()),
              IsOkAndHolds(std::nullopt))
      << "its store draws none";
}

// T6: Joe is locked in the second round, so a timestamp of the first was drawn too early.
TEST_F(PrewriteTest, TheTimestampIsThatOfTheLastRound) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Joe", "1")}));
  other_.Die();
  me_.wire().DrawWithLocks();
  Timestamp after_first;
  me_.wire().After({"mutate", 1}, [&] { after_first = world_.oracle.GetTimestamp().value(); });
  const auto drawn = Prewrite(me_.env(), Begin(7, {Put("Bob", "3"), Put("Joe", "9")}), me_.deadline());
  ASSERT_THAT(drawn, IsOkAndHolds(::testing::Ne(std::nullopt)));
  EXPECT_GT(**drawn, after_first);
}

// T6: a read shows that Joe was locked, but not when.
TEST_F(PrewriteTest, WithALockWhoseReplyWasLostNoTimestampIsReturned) {
  me_.wire().DrawWithLocks();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply, .rows = 0b10});
  EXPECT_THAT(Prewrite(me_.env(), Begin(7, {Put("Bob", "3"), Put("Joe", "9")}), me_.deadline()),
              IsOkAndHolds(std::nullopt));
  EXPECT_THAT(Locks(), SizeIs(2));
}

// Only rows that failed are sent again.
TEST_F(PrewriteTest, RowsThatAreLockedAreNotSentAgain) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Joe", "1")}));
  other_.Die();
  MustPrewrite(Begin(7, {Put("Bob", "3"), Put("Joe", "9"), Put("Ann", "1")}));
  const std::vector<Wire::Call> calls = me_.wire().calls();
  EXPECT_EQ(calls.front().rows, 3u);
  EXPECT_EQ(calls.back().what, "mutate");
  EXPECT_EQ(calls.back().rows, 1u);
}

TEST_F(PrewriteTest, AnUnreachableStoreIsTriedUntilTheDeadline) {
  me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Bob", "3")})), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
  EXPECT_LT(world_.runtime.Elapsed(), 2 * Options().call_timeout);
  EXPECT_GT(world_.runtime.sleeps(), 10);
}

TEST_F(PrewriteTest, AnErrorThatStaysIsNotTriedAgain) {
  me_.wire().FailFrom(1, {.kind = Kind::kRefused, .error = absl::ResourceExhaustedError("the disk is full")});
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Bob", "3")})), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(world_.runtime.sleeps(), 0);
}

// G4
TEST_F(PrewriteTest, AtTheSafePointItIsRefused) {
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(7)), IsOk());
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Bob", "3")})), StatusIs(absl::StatusCode::kOutOfRange));
  MustPrewrite(Begin(8, {Put("Bob", "3")}));
}

TEST_F(PrewriteTest, AMalformedLockIsReported) {
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Set(Family::kLock, kColumn, Timestamp(5), "garbage")}}});
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Bob", "3")})), StatusIs(absl::StatusCode::kDataLoss));
  world_.store->Mutate({{kTable, "Ann", {}, {Mutation::Set(Family::kLock, kColumn, Timestamp(5), "\x02")}}});
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Ann", "3")})), StatusIs(absl::StatusCode::kFailedPrecondition));
  world_.store->Mutate({{kTable, "Joe", {}, {Mutation::Set(Family::kLock, kColumn, Timestamp(5), "\x01")}}});
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Joe", "3")})), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(PrewriteTest, AMissingTableIsNotFound) {
  EXPECT_THAT(TryPrewrite(Begin(7, {Put("Bob", "3").In("nowhere")})), StatusIs(absl::StatusCode::kNotFound));
}

// --- FindObstacle, for a refused row.

TEST_F(PrewriteTest, WithoutAnObstacleTheRowIsTriedAgain) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  EXPECT_EQ(FindObstacle(me_.env(), t.rows[0], t.start_ts).value(), Obstacle::kNone);
}

TEST_F(PrewriteTest, FindObstacleRecognisesItsOwnLockAndRecord) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Bob", "x").Of("name")});
  MustPrewrite(t);
  EXPECT_EQ(FindObstacle(me_.env(), t.rows[0], t.start_ts).value(), Obstacle::kOwnLock);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(FindObstacle(me_.env(), t.rows[0], t.start_ts).value(), Obstacle::kOwnRecord);
}

}  // namespace
}  // namespace percolator
