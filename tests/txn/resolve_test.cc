// SPDX-License-Identifier: Apache-2.0

// Lock resolution, step by step: src/txn/resolve.h.

#include "src/txn/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/txn/commit.h"
#include "src/txn/outcome.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

class ResolveTest : public StepsTest {
 protected:
  absl::StatusOr<Verdict> DecideBy(Client& client, const FoundLock& met, LiveLocks live_locks = LiveLocks::kKeep) {
    return Decide(client.env(), met, live_locks);
  }
  absl::StatusOr<bool> Resolve(const std::vector<FoundLock>& locks, LiveLocks live_locks = LiveLocks::kKeep) {
    return ResolveLocks(other_.env(), locks, live_locks);
  }
  // Its secondary "Joe" is locked; each test decides about the primary.
  Writes Transfer(uint64_t start_ts) { return Begin(start_ts, {Put("Bob", "3"), Put("Joe", "9")}); }
};

// --- The four states of the primary's row.

TEST_F(ResolveTest, ARecordAtThePrimaryMeansRollForward) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Committed(Timestamp(8)));
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Joe"), "write@8 put 9 from 7");
}

TEST_F(ResolveTest, AMarkerAtThePrimaryMeansRollBack) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  RollBack(Begin(7, {Put("Bob", "3")}));
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

TEST_F(ResolveTest, ALiveLockAtThePrimaryMeansWait) {
  MustPrewrite(Transfer(7));
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
  EXPECT_FALSE(Resolve({Met("Joe", 7)}).value());
  EXPECT_THAT(Locks(), SizeIs(2));
}

TEST_F(ResolveTest, ADeadLockAtThePrimaryIsRolledBackThereFirst) {
  MustPrewrite(Transfer(7));
  me_.Die();
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"),
            "lock@7 put 9 of Bob");  // K1: a resolver may die here
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// The secondary may have arrived first.
TEST_F(ResolveTest, AMissingPrimaryIsWaitedForWhileItsOwnerLives) {
  const Writes t = Transfer(7);
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
  EXPECT_EQ(Cells("Bob"), "");
  ASSERT_TRUE(ArrivePrewrite(t, "Bob"));
  MustCommitPrimary(t, 8);
  MustRead("Joe", 9, "9");
}

TEST_F(ResolveTest, AMissingPrimaryOfADeadOwnerIsMarked) {
  const Writes t = Transfer(7);
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  me_.Die();
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
  EXPECT_FALSE(ArrivePrewrite(t, "Bob"));  // its prewrite comes too late
}

TEST_F(ResolveTest, AMissingPrimaryUnderANewerWriteIsMarked) {
  const Writes t = Transfer(7);
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  MustWrite("Bob", "4", 8, 9);  // so its prewrite is refused forever
  me_.Die();
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Bob"), "rollback@7 | write@9 put 4 from 8");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// --- Races at the primary (K2). The hooks run between two calls of the resolver.

// The resolver has seen no primary; then the owner's prewrite and commit arrive.
TEST_F(ResolveTest, APrimaryThatCommitsWhileItIsMarkedWins) {
  const Writes t = Transfer(7);
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  world_.coordinator.EndSession(me_.session());
  other_.wire().After(1, [&] {
    ASSERT_TRUE(ArrivePrewrite(t, "Bob"));
    ASSERT_TRUE(ArriveCommit(t, "Bob", 8));
  });
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Committed(Timestamp(8)));
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
}

// The same, with only the prewrite: the lock is rolled back.
TEST_F(ResolveTest, APrimaryThatIsLockedWhileItIsMarkedIsRolledBack) {
  const Writes t = Transfer(7);
  ASSERT_TRUE(ArrivePrewrite(t, "Joe"));
  world_.coordinator.EndSession(me_.session());
  other_.wire().After(1, [&] { ASSERT_TRUE(ArrivePrewrite(t, "Bob")); });
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
  EXPECT_EQ(Cells("Bob"), "rollback@7");
}

// The resolver has seen the lock; then the owner commits.
TEST_F(ResolveTest, AnOwnerThatCommitsWhileItIsRolledBackWins) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  world_.coordinator.EndSession(me_.session());
  for (const size_t call : {1u, 2u}) {  // after the read of the primary, after the read of its row
    SCOPED_TRACE(call);
    const Writes again = call == 1 ? t : Transfer(17);
    if (call == 2) {
      MustPrewrite(again);
    }
    const uint64_t start = again.start_ts.value();
    other_.wire().CountFromHere();
    other_.wire().After(call, [&, start] { ASSERT_TRUE(ArriveCommit(again, "Bob", start + 1)); });
    EXPECT_EQ(DecideBy(other_, Met("Joe", start)).value(), Verdict::Committed(Timestamp(start + 1)));
    EXPECT_TRUE(Resolve({Met("Joe", start)}).value());
  }
  EXPECT_THAT(Locks(), IsEmpty());
}

TEST_F(ResolveTest, TwoResolversAgree) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  me_.Die();
  const FoundLock met = Met("Joe", 7);
  Client third(&world_, Options());
  other_.wire().After(1, [&] { EXPECT_TRUE(ResolveLocks(third.env(), {met}, LiveLocks::kKeep).value()); });
  EXPECT_TRUE(Resolve({met}).value());
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// --- The effect on the lock (T13).

TEST_F(ResolveTest, OnlyTheExactLockIsTouched) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  const FoundLock met = Met("Joe", 7);
  RollBack(t);
  MustPrewrite(Begin(9, {Put("Joe", "new")}));
  EXPECT_TRUE(Resolve({met}).value());  // it does not block the reader any more
  EXPECT_EQ(Cells("Joe"), "lock@9 put new primary | rollback@7");
}

TEST_F(ResolveTest, AllCellsOfTheRowAreSettledTogether) {
  const Writes t =
      Begin(7, {Put("Bob", "3"), Put("Joe", "9"), Put("Joe", std::string(300, 'x')).Of("long"), Del("Joe").Of("old")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(
      Cells("Joe"),
      "write@8 put 9 from 7 | write long@8 put long from 7 | write old@8 delete from 7 | data long@7 (300 bytes)");
  EXPECT_EQ(other_.env().counters.rolled_forward, 3u);
}

TEST_F(ResolveTest, ARollbackRemovesTheData) {
  const Writes t = Begin(7, {Put("Bob", std::string(300, 'b')), Put("Joe", std::string(300, 'j'))});
  MustPrewrite(t);
  me_.Die();
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// Every client that finishes a transaction leaves the same bytes.
TEST_F(ResolveTest, RollingForwardLeavesTheSameCellsAsTheOwner) {
  const auto writes = [this](uint64_t start) {
    return Begin(start, {Put("Bob", "3"), Put("Joe", ""), Put("Joe", std::string(300, 'x')).Of("long"),
                         Del("Joe").Of("old"), Relied("Joe", 5).Of("seen")});
  };
  const auto bytes = [this] {
    return world_.store->Read({{kTable, "Joe", {{Family::kWrite}, {Family::kData}}}}).value()[0];
  };
  MustCommit(writes(7), 8);
  const Row by_owner = bytes();
  world_.store->DropTable(kTable).IgnoreError();
  ASSERT_THAT(world_.store->CreateTable({kTable, ""}), IsOk());
  MustPrewrite(writes(7));
  MustCommitPrimary(writes(7), 8);
  EXPECT_TRUE(Resolve({Met("Joe", 7)}).value());
  EXPECT_EQ(bytes(), by_owner);
}

TEST_F(ResolveTest, ManyLocksOfOneTransactionTakeOneReadOfThePrimary) {
  std::vector<PlannedWrite> planned = {Put("Bob", "3")};
  std::vector<FoundLock> met;
  for (int i = 0; i < 20; ++i) planned.push_back(Put("row" + std::to_string(i), "x"));
  const Writes t = Begin(7, planned);
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  for (int i = 0; i < 20; ++i) met.push_back(Met("row" + std::to_string(i), 7));
  other_.wire().CountFromHere();
  EXPECT_TRUE(Resolve(met).value());
  EXPECT_THAT(Locks(), IsEmpty());
  EXPECT_EQ(other_.wire().CountOf("read"),
            21u);  // one for the primary, one for the locks of each row
  EXPECT_EQ(other_.wire().CountOf("mutate"), 1u);
}

TEST_F(ResolveTest, EachLockIsSettledByTheVerdictOfItsOwnTransaction) {
  const Writes committed = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  const Writes dead = BeginBy(other_, 17, {Put("Ann", "1"), Put("Eve", "2")});
  MustPrewrite(committed);
  MustCommitPrimary(committed, 8);
  MustPrewriteBy(other_, dead);
  const std::vector<FoundLock> met = {Met("Joe", 7), Met("Eve", 17)};
  other_.Die();
  EXPECT_TRUE(ResolveLocks(me_.env(), met, LiveLocks::kKeep).value());
  EXPECT_EQ(Cells("Joe"), "write@8 put 9 from 7");
  EXPECT_EQ(Cells("Eve"), "rollback@17");
}

TEST_F(ResolveTest, ALiveLockDoesNotStopTheOthers) {
  MustPrewrite(Begin(7, {Put("Joe", "9")}));
  const Writes committed = BeginBy(other_, 8, {Put("Ann", "1"), Put("Eve", "2")});
  MustPrewriteBy(other_, committed);
  ExpectOutcome(CommitPrimary(other_.env(), committed, Timestamp(9), other_.deadline()), Outcome::kCommitted);
  EXPECT_FALSE(Resolve({Met("Joe", 7), Met("Eve", 8)}).value());
  EXPECT_EQ(Cells("Joe"), "lock@7 put 9 primary");
  EXPECT_EQ(Cells("Eve"), "write@9 put 2 from 8");
}

// However many rows are locked and however often a request is lost, each attempt makes progress.
TEST_F(ResolveTest, LocksReadBeforeAFailureAreSettled) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Ann", "1"), Put("Eve", "2"), Put("Joe", "9")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  const std::vector<FoundLock> met = {Met("Ann", 7), Met("Eve", 7), Met("Joe", 7)};
  other_.wire().CountFromHere();
  other_.wire().FailAt(4, {.kind = Kind::kLoseReply});  // the primary, Ann, Eve, Joe
  EXPECT_THAT(Resolve(met), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Cells("Ann"), "write@8 put 1 from 7");
  EXPECT_EQ(Cells("Eve"), "write@8 put 2 from 7");
  EXPECT_EQ(Cells("Joe"), "lock@7 put 9 of Bob");
  EXPECT_TRUE(Resolve(met).value());
  EXPECT_THAT(Locks(), IsEmpty());
}

// --- Liveness (T14).

TEST_F(ResolveTest, ASessionThatEndedIsDeadAtOnce) {
  MustPrewrite(Transfer(7));
  world_.coordinator.EndSession(me_.session());
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
}

TEST_F(ResolveTest, ALockIsDeadAsSoonAsItsLeaseHasPassed) {
  MustPrewrite(Transfer(7));
  world_.oracle.SetNext(7 + kLease);
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
}

// Only a refresh of the primary counts: the secondary's lock is never renewed.
TEST_F(ResolveTest, ARefreshedPrimaryIsAliveWhateverTheAgeOfTheSecondary) {
  Writes t = Transfer(7);
  MustPrewrite(t);
  PassLease();
  t.rows[0].cells[0].lock.refreshed = world_.oracle.next();
  world_.store->Mutate({{kTable,
                         "Bob",
                         {},
                         {Mutation::Set(Family::kLock, kColumn, Timestamp(7), EncodeLock(t.rows[0].cells[0].lock))}}});
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
}

// T14: if the coordinator cannot be reached, the age of the lock decides.
TEST_F(ResolveTest, WithoutACoordinatorTheAgeDecides) {
  MustPrewrite(Transfer(7));
  world_.coordinator.AnswerWith(absl::UnavailableError("no coordinator"));
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
  PassLease();
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::RolledBack());
}

TEST_F(ResolveTest, WithoutOracleALiveSessionIsNotJudged) {
  MustPrewrite(Transfer(7));
  world_.oracle.AnswerWith(absl::UnavailableError("no oracle"));
  EXPECT_THAT(DecideBy(other_, Met("Joe", 7)), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Locks(), SizeIs(2));
}

TEST_F(ResolveTest, LiveTransactionsAreRolledBackOnDemand) {
  MustPrewrite(Transfer(7));
  EXPECT_TRUE(Resolve({Met("Joe", 7)}, LiveLocks::kRollBack).value());
  EXPECT_THAT(Locks(), IsEmpty());
  EXPECT_EQ(other_.env().counters.rolled_back, 1u);
}

// --- The cache of verdicts (K3).

TEST_F(ResolveTest, ADefiniteVerdictIsCached) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9"), Put("Ann", "1")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Committed(Timestamp(8)));
  other_.wire().CountFromHere();
  EXPECT_EQ(DecideBy(other_, Met("Ann", 7)).value(), Verdict::Committed(Timestamp(8)));
  EXPECT_THAT(other_.wire().calls(), IsEmpty());
}

TEST_F(ResolveTest, AnIndefiniteVerdictIsNotCached) {
  const Writes t = Transfer(7);
  MustPrewrite(t);
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Pending());
  EXPECT_EQ(other_.env().verdicts.Find(Timestamp(7)), std::nullopt);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(DecideBy(other_, Met("Joe", 7)).value(), Verdict::Committed(Timestamp(8)));
}

// T11: however many others have written the cell since, the record is found, with a bounded number of reads.
TEST_F(ResolveTest, TheOwnRecordIsFoundBelowThousandsOfOthers) {
  MustWrite("Bob", "mine", 7, 8);
  for (uint64_t ts = 100; ts < 8'000; ts += 4) MustWrite("Bob", "another", ts, ts + 1);
  const size_t reads = me_.wire().CountOf("read");
  EXPECT_EQ(DecideOwn(me_.env(), Cell("Bob"), Timestamp(7)).value(), Verdict::Committed(Timestamp(8)));
  EXPECT_LE(me_.wire().CountOf("read") - reads, 16u);
}

TEST_F(ResolveTest, AmongThousandsOfRecordsOfOthersNoneIsTakenForOwn) {
  for (uint64_t ts = 100; ts < 8'000; ts += 4) MustWrite("Bob", "another", ts, ts + 1);
  const size_t reads = me_.wire().CountOf("read");
  EXPECT_EQ(DecideOwn(me_.env(), Cell("Bob"), Timestamp(7)).value(), Verdict::RolledBack());
  EXPECT_LE(me_.wire().CountOf("read") - reads, 16u);
}

// The owner asks the store, not the cache: see DecideOwn.
TEST_F(ResolveTest, TheOwnerGetsTheVerdictInTheStore) {
  const Writes t = Transfer(7);
  MustCommit(t, 8);
  me_.env().verdicts.Remember(Timestamp(7), Verdict::RolledBack());
  EXPECT_EQ(DecideOwn(me_.env(), Cell("Bob"), Timestamp(7)).value(), Verdict::Committed(Timestamp(8)));
}

// --- Failures of the store, and damaged records.

TEST_F(ResolveTest, AnUnreachablePrimaryIsNotJudged) {
  MustPrewrite(Transfer(7));
  const FoundLock met = Met("Joe", 7);
  me_.Die();
  other_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(DecideBy(other_, met), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Locks(), SizeIs(2));
}

TEST_F(ResolveTest, ALostAnswerOfTheRollbackIsAnError) {
  MustPrewrite(Transfer(7));
  const FoundLock met = Met("Joe", 7);
  me_.Die();
  other_.wire().FailAt(3, {.kind = Kind::kLoseReply});
  EXPECT_THAT(DecideBy(other_, met), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(DecideBy(other_, met).value(), Verdict::RolledBack());
}

// A lock of the same start that points to another primary decides nothing.
TEST_F(ResolveTest, APrimaryThatNamesAnotherPrimaryDecidesNothing) {
  MustPrewrite(Transfer(7));
  FoundLock met = Met("Joe", 7);
  met.lock.primary = Cell("Joe");  // in truth a secondary
  EXPECT_THAT(DecideBy(other_, met), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ResolveTest, DamagedRecordsAreNotGuessed) {
  MustPrewrite(Transfer(7));
  const FoundLock met = Met("Joe", 7);
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Set(Family::kWrite, kColumn, Timestamp(8), "\x01")}}});
  EXPECT_THAT(DecideBy(other_, met), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Locks(), SizeIs(2));
}

// Garbage collection removes old records of the primary once all its locks are gone. A resolver that met one of the
// locks before, and comes back late, must not leave a marker that the transaction's owner would take for a verdict (T1,
// T10).
TEST_F(ResolveTest, ALateResolverDoesNotTurnACollectedCommitIntoARollback) {
  const Writes t = Begin(7, {Del("Bob"), Put("Joe", "9")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  const FoundLock met = Met("Joe", 7);  // then the resolver stalls
  MustRead("Joe", 9, "9");
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(20)), IsOk());
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Erase(Family::kWrite, kColumn, TimestampRange::All())}}});
  Client late(&world_, Options());
  me_.Die();
  EXPECT_THAT(ResolveLocks(late.env(), {met}, LiveLocks::kKeep), IsOk());
  MustRead("Joe", 21, "9");
  const CommitResult resolved = ResolveOutcome(other_.env(), t.primary(), t.start_ts, other_.deadline());
  EXPECT_NE(static_cast<int>(resolved.outcome), static_cast<int>(Outcome::kAborted)) << "it committed at 8";
}

}  // namespace
}  // namespace percolator
