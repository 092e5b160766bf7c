// SPDX-License-Identifier: Apache-2.0

// The second phase of a commit and the rollback, step by step: src/txn/commit.h and src/txn/outcome.h.

#include "src/txn/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/txn/outcome.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::IsEmpty;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

class CommitTest : public StepsTest {
 protected:
  CommitResult Resolve(const Writes& writes) {
    return ResolveOutcome(me_.env(), writes.primary(), writes.start_ts, me_.deadline());
  }
};

// Figure 4 of the paper.
TEST_F(CommitTest, TheTransferOfFigure4) {
  MustCommit(Begin(5, {Put("Bob", "10"), Put("Joe", "2")}), 6);
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7 | write@6 put 10 from 5");
  EXPECT_EQ(Cells("Joe"), "lock@7 put 9 of Bob | write@6 put 2 from 5");
  MustCommitSecondaries(t, 8);
  EXPECT_EQ(Cells("Joe"), "write@8 put 9 from 7 | write@6 put 2 from 5");
  MustRead("Bob", 8, "3");
  MustRead("Joe", 8, "9");
  MustRead("Bob", 7, "10");
  MustRead("Joe", 7, "2");
}

TEST_F(CommitTest, TheOtherCellsOfThePrimarysRowCommitWithIt) {
  const Writes t = Begin(7, {Put("Bob", "3"), Del("Bob").Of("debt"), Relied("Bob", 0).Of("name"), Put("Joe", "9")});
  MustPrewrite(t);
  MustCommitPrimary(t, 8);
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7 | write debt@8 delete from 7 | write name@8 verify 0 from 7");
}

TEST_F(CommitTest, ALongValueStaysInTheData) {
  MustCommit(Begin(7, {Put("Bob", std::string(300, 'b'))}), 8);
  EXPECT_EQ(Cells("Bob"), "write@8 put long from 7 | data@7 (300 bytes)");
  MustRead("Bob", 8, std::string(300, 'b'));
}

// T11
TEST_F(CommitTest, ASecondRequestChangesNothing) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustCommit(t, 8);
  MustCommitPrimary(t, 8);
  MustCommitSecondaries(t, 8);
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
  EXPECT_EQ(Cells("Joe"), "write@8 put 9 from 7");
}

// The one verdict (T1): a second commit, at another timestamp, gets the first verdict.
TEST_F(CommitTest, ASecondCommitTimestampChangesNothing) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustCommit(t, 8);
  const CommitResult again = TryCommitPrimary(t, 12);
  ExpectOutcome(again, Outcome::kCommitted);
  EXPECT_EQ(again.commit_ts, Timestamp(8));
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
}

TEST_F(CommitTest, ATransactionThatWasRolledBackAborts) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustPrewrite(t);
  PassLease();
  MustReadNothing("Joe", 200);  // treats it as dead
  const CommitResult result = TryCommitPrimary(t, 210);
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kRolledBack, "Bob");
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
}

// A client does not commit another transaction's lock (T13).
TEST_F(CommitTest, ALockOfAnotherTransactionIsNotCommitted) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  PassLease();
  const Writes next = BeginBy(other_, 200, {Put("Bob", "4")});
  MustPrewriteBy(other_, next);
  ExpectOutcome(TryCommitPrimary(t, 210), Outcome::kAborted);
  EXPECT_EQ(Cells("Bob"), "lock@200 put 4 primary | rollback@7");
  EXPECT_FALSE(ArriveCommit(t, "Bob", 210));
}

TEST_F(CommitTest, WithoutAPrewriteTheCommitAborts) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  ExpectOutcome(TryCommitPrimary(t, 8), Outcome::kAborted);
  EXPECT_EQ(Cells("Bob"),
            "rollback@7");  // so that its prewrite cannot be applied any more
}

// --- Lost answers (C7, T10).

TEST_F(CommitTest, ALostRequestIsSentAgain) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  MustCommitPrimary(t, 8);
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
}

TEST_F(CommitTest, AfterALostReplyTheOutcomeIsFoundOut) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  MustCommitPrimary(t, 8);
}

TEST_F(CommitTest, AfterALostReplyTheOutcomeIsFoundOutUnderNewerWrites) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().After(1, [&] {
    MustWrite("Bob", "4", 9, 10);
    MustWrite("Bob", "5", 11, 12);
  });
  MustCommitPrimary(t, 8);
}

TEST_F(CommitTest, AStoreMayRepeatARequest) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kTwice});
  MustCommitPrimary(t, 8);
}

TEST_F(CommitTest, AnUnreachableStoreMeansUnknownAndResolveFindsTheOutcome) {
  for (const bool applied : {false, true}) {
    SCOPED_TRACE(applied);
    const std::string row = applied ? "Bob" : "Joe";
    const uint64_t start = world_.oracle.GetTimestamp()->value();
    const Writes t = Begin(start, {Put(row, "3")});
    MustPrewrite(t);
    me_.wire().CountFromHere();
    me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
    if (applied) me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
    const CommitResult unknown = TryCommitPrimary(t, start + 1);
    ExpectOutcome(unknown, Outcome::kUnknown);
    EXPECT_EQ(unknown.primary, Cell(row));
    EXPECT_EQ(unknown.start_ts, t.start_ts);
    me_.wire().ForgetFaults();
    const CommitResult resolved = Resolve(t);
    ExpectOutcome(resolved, applied ? Outcome::kCommitted : Outcome::kAborted);
    EXPECT_EQ(resolved.commit_ts, applied ? Timestamp(start + 1) : Timestamp());
    ExpectOutcome(Resolve(t), resolved.outcome);  // the outcome stays
  }
}

TEST_F(CommitTest, ARequestThatWasCertainlyNotAppliedMeansAborted) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kRefused, .error = absl::FailedPreconditionError("the store is closed")});
  ExpectOutcome(TryCommitPrimary(t, 8), Outcome::kAborted);
}

// After one request with an unknown outcome, nothing is certain any more.
TEST_F(CommitTest, AfterAnUncertainRequestARefusalProvesNothing) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  me_.wire().FailAt(2, {.kind = Kind::kRefused, .error = absl::FailedPreconditionError("the store is closed")});
  ExpectOutcome(TryCommitPrimary(t, 8), Outcome::kUnknown);
  EXPECT_EQ(Cells("Bob"), "write@8 put 3 from 7");
}

TEST_F(CommitTest, AnyOtherErrorLeavesTheOutcomeOpen) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kRefused, .error = absl::DataLossError("I/O error")});
  ExpectOutcome(TryCommitPrimary(t, 8), Outcome::kUnknown);
}

TEST_F(CommitTest, SomeErrorsProveThatARequestWasNotApplied) {
  for (const absl::Status& status :
       {absl::NotFoundError(""), absl::AlreadyExistsError(""), absl::InvalidArgumentError(""),
        absl::FailedPreconditionError(""), absl::OutOfRangeError(""), absl::UnimplementedError("")}) {
    EXPECT_TRUE(CertainlyNotApplied(status)) << status;
  }
  for (const absl::Status& status :
       {absl::UnavailableError(""), absl::DeadlineExceededError(""), absl::ResourceExhaustedError(""),
        absl::DataLossError(""), absl::InternalError(""), absl::UnknownError(""), absl::CancelledError("")}) {
    EXPECT_FALSE(CertainlyNotApplied(status)) << status;
  }
}

// --- RollBackOwn

TEST_F(CommitTest, ARollbackLeavesMarkersAndNothingElse) {
  MustWrite("Bob", "10", 5, 6);
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", std::string(300, 'j')), Del("Ann")});
  MustPrewrite(t);
  RollBack(t);
  EXPECT_EQ(Cells("Bob"), "rollback@7 | write@6 put 10 from 5");
  EXPECT_EQ(Cells("Joe"), "rollback@7");
  EXPECT_EQ(Cells("Ann"), "rollback@7");
  MustRead("Bob", 9, "10");
}

TEST_F(CommitTest, ARollbackBeforeThePrewriteStopsIt) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  RollBack(t);
  EXPECT_FALSE(ArrivePrewrite(t, "Bob"));
  EXPECT_THAT(Locks(), IsEmpty());
}

// T13: another transaction's lock stays.
TEST_F(CommitTest, ARollbackLeavesLocksOfOthers) {
  MustPrewriteBy(other_, BeginBy(other_, 5, {Put("Bob", std::string(300, 'b'))}));
  RollBack(Begin(7, {Put("Bob", std::string(300, 'c')), Put("Joe", "9")}));
  EXPECT_EQ(Cells("Bob"), "lock@5 put long primary | rollback@7 | data@5 (300 bytes)");
}

TEST_F(CommitTest, ARollbackIsTriedAgainUntilTheDeadline) {
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply, .rows = 0b01});
  RollBack(t);
  EXPECT_THAT(Locks(), IsEmpty());
  me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  RollBack(Begin(9, {Put("Bob", "3")}));
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
  EXPECT_LT(world_.runtime.Elapsed(), 2 * Options().call_timeout);
}

// --- ResolveOutcome: the one true answer (T10).

TEST_F(CommitTest, TheOutcomeIsThatOfThePrimary) {
  const Writes committed = Begin(7, {Put("Bob", "3")});
  MustCommit(committed, 8);
  const CommitResult result = Resolve(committed);
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp(8));
}

TEST_F(CommitTest, ResolveRollsBackAnUndecidedTransaction) {
  const Writes locked = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  MustPrewrite(locked);
  ExpectOutcome(Resolve(locked), Outcome::kAborted);
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_FALSE(ArriveCommit(locked, "Bob", 8));
  const Writes never_came = Begin(9, {Put("Ann", "3")});
  ExpectOutcome(Resolve(never_came), Outcome::kAborted);
  EXPECT_FALSE(ArrivePrewrite(never_came, "Ann"));
}

TEST_F(CommitTest, ResolveTriesUntilTheDeadline) {
  const Writes t = Begin(7, {Put("Bob", "3")});
  MustCommit(t, 8);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseReply});
  ExpectOutcome(Resolve(t), Outcome::kCommitted);
  me_.wire().CountFromHere();
  me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  ExpectOutcome(Resolve(t), Outcome::kUnknown);
}

// Garbage collection may have removed the verdict. Then the outcome is unknown and must not be guessed.
TEST_F(CommitTest, BelowTheSafePointAMissingVerdictIsUnknown) {
  const Writes t = Begin(7, {Del("Bob")});
  MustCommit(t, 8);
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(20)), IsOk());
  ExpectOutcome(Resolve(t),
                Outcome::kCommitted);  // while the record exists
  world_.store->Mutate({{kTable, "Bob", {}, {Mutation::Erase(Family::kWrite, kColumn, TimestampRange::All())}}});
  ExpectOutcome(Resolve(t), Outcome::kUnknown);
  EXPECT_EQ(Cells("Bob"), "");
}

}  // namespace
}  // namespace percolator
