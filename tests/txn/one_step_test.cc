// SPDX-License-Identifier: Apache-2.0

// The commit in one step: src/txn/one_step.h.

#include "src/txn/one_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::IsEmpty;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

class OneStepTest : public StepsTest {
 protected:
  CommitResult TryCommit(const Writes& writes) { return CommitInOneStep(me_.env(), writes, me_.deadline()); }
};

TEST_F(OneStepTest, LeavesTheSameCellsAsTwoPhases) {
  const auto planned = [](const std::string& suffix) {
    return std::vector<PlannedWrite>{Put("Bob" + suffix, "3"), Put("Bob" + suffix, std::string(300, 'x')).Of("long"),
                                     Del("Joe" + suffix), Relied("Ann" + suffix, 5)};
  };
  MustCommitOneStep(Begin(7, planned("1")), 8);
  MustCommit(Begin(7, planned("2")), 8);
  for (const std::string row : {"Bob", "Joe", "Ann"}) EXPECT_EQ(Cells(row + "1"), Cells(row + "2"));
  EXPECT_EQ(Cells("Bob1"), "write@8 put 3 from 7 | write long@8 put long from 7 | data long@7 (300 bytes)");
}

TEST_F(OneStepTest, TakesOneCall) {
  MustCommitOneStep(Begin(7, {Put("Bob", "3"), Put("Joe", "9"), Put("Ann", "1")}), 8);
  ASSERT_EQ(me_.wire().calls().size(), 1u);
  EXPECT_EQ(me_.wire().calls()[0].what, "together");
}

TEST_F(OneStepTest, AConflictLeavesNothing) {
  MustWrite("Joe", "2", 8, 9);
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kNewerWrite, "Joe", 8, 9);
  EXPECT_EQ(Cells("Bob"), "");
  EXPECT_EQ(Cells("Joe"), "write@9 put 2 from 8");
}

// A live lock of a client that commits in two phases. The marker stops a late copy of the request, after the lock is
// gone.
TEST_F(OneStepTest, ALiveLockIsAConflict) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Joe", "1")}));
  me_.wire().FailAt(1, {.kind = Kind::kEchoLate});
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kLocked, "Joe", 5);
  RollBack(BeginBy(other_, 5, {Put("Joe", "1")}));
  me_.wire().DeliverLate();
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@5");
}

TEST_F(OneStepTest, TheLockOfADeadClientIsResolved) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Ann", "1"), Put("Joe", "1")}));
  other_.Die();
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(Cells("Ann"), "rollback@5");
}

// A locked cell whose transaction is rolled forward: its commit timestamp decides whether it conflicts.
TEST_F(OneStepTest, TheLockOfACommittedClientIsRolledForward) {
  const Writes t = BeginBy(other_, 3, {Put("Ann", "1"), Put("Joe", "1")});
  MustPrewriteBy(other_, t);
  ASSERT_TRUE(ArriveCommit(t, "Ann", 4));
  ExpectOutcome(TryCommit(Begin(7, {Put("Joe", "9")})), Outcome::kCommitted);
  const Writes u = BeginBy(other_, 1013, {Put("Ann", "1"), Put("Joe", "1")});
  MustPrewriteBy(other_, u);
  ASSERT_TRUE(ArriveCommit(u, "Ann", 1020));
  const CommitResult result = TryCommit(Begin(1015, {Put("Joe", "9")}));
  ExpectConflict(result.status, Conflict::Kind::kNewerWrite, "Joe", 1013, 1020);
}

TEST_F(OneStepTest, ItsOwnMarkerStopsIt) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  RollBack(t);
  const CommitResult result = TryCommit(t);
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kRolledBack, "Bob");
  EXPECT_EQ(Cells("Bob"), "rollback@7");
}

// G7: a copy of the request may have been applied before the safe point passed. CheckAge asks before the request is
// sent.
TEST_F(OneStepTest, ARefusalBecauseOfTheSafePointLeavesTheOutcomeUnknown) {
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(7)), IsOk());
  ExpectOutcome(TryCommit(Begin(7, {Put("Bob", "3")})), Outcome::kUnknown);
  EXPECT_EQ(Cells("Bob"), "");
}

// A full disk is not a conflict: running the transaction again would not help.
TEST_F(OneStepTest, AFullDiskIsReportedAsAnAbort) {
  me_.wire().FailAt(1, {.kind = Kind::kRefused, .error = absl::ResourceExhaustedError("full")});
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3")}));
  ExpectOutcome(result, Outcome::kAborted);
  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Cells("Bob"), "rollback@7");
}

// --- Lost answers (C7 in one step, T10).

TEST_F(OneStepTest, AfterALostReplyTheOutcomeIsFoundOut) {
  world_.oracle.SetNext(8);
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp(8));
}

TEST_F(OneStepTest, ALostReplyIsFoundOutUnderANewerWrite) {
  world_.oracle.SetNext(8);
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().After(1, [&] { MustWrite("Bob", "4", 9, 10); });
  ExpectOutcome(TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")})), Outcome::kCommitted);
}

// It is unknown whether the request will still arrive. A marker ensures that it is refused.
TEST_F(OneStepTest, ALostRequestIsStopped) {
  for (const Kind kind : {Kind::kLoseRequest, Kind::kLate}) {
    SCOPED_TRACE(FaultName(kind));
    const std::string row = kind == Kind::kLate ? "Bob" : "Joe";
    me_.wire().CountFromHere();
    me_.wire().FailAt(1, {.kind = kind});
    ExpectOutcome(TryCommit(Begin(7, {Put(row, "3"), Put("Ann", "9")})), Outcome::kAborted);
    me_.wire().DeliverLate();
    EXPECT_EQ(Cells(row), "rollback@7");
    EXPECT_EQ(Cells("Ann"), "");
  }
}

TEST_F(OneStepTest, AnUnreachableStoreMeansUnknownAndResolveFindsTheOutcome) {
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().FailFrom(2, {.kind = Kind::kLoseRequest});
  const Writes t = Begin(7, {Put("Bob", "3")});
  ExpectOutcome(TryCommit(t), Outcome::kUnknown);
  me_.wire().ForgetFaults();
  MustRead("Bob", 2'000'000, "3");
}

// --- Requests that arrive twice (C11 in one step, T11).

TEST_F(OneStepTest, AnEchoChangesNothing) {
  me_.wire().FailAt(1, {.kind = Kind::kEchoLate});
  MustCommitOneStep(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}), 8);
  me_.wire().DeliverLate();
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
  MustWrite("Bob", "4", 9, 10);
  me_.wire().DeliverLate();
  EXPECT_EQ(Cells("Bob"), "write@10 put 4 from 9 | write@8 put 3 from 7");
}

// A store or network that repeats a request by itself returns the answer of the second copy: "not applied".
TEST_F(OneStepTest, TheAnswerOfASecondCopyIsRecognised) {
  me_.wire().FailAt(1, {.kind = Kind::kTwice});
  world_.oracle.SetNext(8);
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp(8));
}

// The same, and another client has overwritten it before the client looks for the obstacle.
TEST_F(OneStepTest, TheAnswerOfASecondCopyIsRecognisedUnderANewerWrite) {
  me_.wire().FailAt(1, {.kind = Kind::kTwice});
  me_.wire().After(1, [&] { MustWrite("Bob", "4", 9, 10); });
  world_.oracle.SetNext(8);
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3"), Put("Joe", "9")}));
  ExpectOutcome(result, Outcome::kCommitted);
  MustRead("Joe", 11, "9");
}

// --- The oracle of the store.

TEST_F(OneStepTest, WithoutTimestampNothingIsWritten) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  world_.oracle.AnswerWith(absl::FailedPreconditionError("the oracle has stopped"));
  ExpectOutcome(TryCommit(t), Outcome::kAborted);
  EXPECT_THAT(Locks(), IsEmpty());
}

// A commit that was reported as aborted never happens, even if a copy of the request arrives when the oracle is back
// (T10, T11).
TEST_F(OneStepTest, AnAbortWithoutATimestampIsFinal) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  me_.wire().FailAt(1, {.kind = Kind::kEchoLate});
  world_.oracle.AnswerWith(absl::UnavailableError("no oracle answers"));
  me_.wire().After(1, [&] { world_.oracle.AnswerWith(absl::OkStatus()); });
  const CommitResult result = TryCommit(t);
  me_.wire().DeliverLate();
  absl::StatusOr<std::optional<std::string>> read = Read(other_, Cell("Bob"), 1'000'000);
  ASSERT_THAT(read, IsOk());
  if (result.committed()) {
    EXPECT_EQ(*read, "3");
  } else {
    ExpectOutcome(result, Outcome::kAborted);
    EXPECT_EQ(*read, std::nullopt) << Cells("Bob");
  }
}

// T10, found by the simulator (seed 504). The store gets no timestamp and reports that; a duplicate of the request
// arrives later.
TEST_F(OneStepTest, ALateCopyOfACommitThatGotNoTimestampIsRefused) {
  me_.wire().FailAt(1, {.kind = Kind::kEchoLate});
  world_.oracle.FailNext(1);
  ExpectOutcome(TryCommit(Begin(7, {Put("Bob", "3")})), Outcome::kAborted);
  EXPECT_EQ(world_.oracle.failures_left(), 0);
  me_.wire().DeliverLate();
  MustReadNothing("Bob", 1'000'000);
}

TEST_F(OneStepTest, TheDeadlineIsKept) {
  me_.wire().FailFrom(2, {.kind = Kind::kLoseRequest});
  MustWrite("Bob", "1", 8, 9);
  const CommitResult result = TryCommit(Begin(7, {Put("Bob", "3")}));
  EXPECT_FALSE(result.committed());
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
  EXPECT_LT(world_.runtime.Elapsed(), 3 * Options().call_timeout);
}

}  // namespace
}  // namespace percolator
