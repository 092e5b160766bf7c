// SPDX-License-Identifier: Apache-2.0

// Transactions on a cluster, in one step and in two phases: percolator/transaction.h.

#include "percolator/transaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

class TransactionTest : public ClusterTest, public ::testing::WithParamInterface<bool> {
 protected:
  TransactionTest() : ClusterTest(Options(GetParam())) {}

  CommitResult Commit(const std::vector<PlannedWrite>& writes) {
    Transaction t(*cluster_);
    Buffer(t, writes);
    return t.Commit();
  }
};

INSTANTIATE_TEST_SUITE_P(Commits, TransactionTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "OneStep" : "TwoPhases"; });

TEST_P(TransactionTest, LaterTransactionsSeeACommit) {
  const Timestamp committed = MustSet({Put("Bob", "3"), Put("Joe", "9")});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Bob"), "3");
  EXPECT_EQ(Get(t, "Joe"), "9");
  EXPECT_GT(t.timestamp(), committed);
}

TEST_P(TransactionTest, TheResultHasTheOutcomeTheTimestampsAndThePrimary) {
  Transaction t(*cluster_);
  EXPECT_EQ(t.timestamp(), Timestamp());
  Buffer(t, {Put("Joe", "9"), Put("Bob", "3")});
  const CommitResult result = t.Commit();
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_TRUE(result.committed());
  EXPECT_GT(result.commit_ts, result.start_ts);
  EXPECT_GT(result.start_ts, Timestamp());
  EXPECT_EQ(t.timestamp(), result.start_ts);
  EXPECT_EQ(result.primary, (CellName{kTable, "Bob", kColumn}));  // the first by name
}

TEST_P(TransactionTest, WithoutCommitNothingIsWritten) {
  {
    Transaction t(*cluster_);
    Buffer(t, {Put("Bob", "3")});
  }
  EXPECT_EQ(Now("Bob"), std::nullopt);
  EXPECT_EQ(cluster_.wire().CountOf("mutate") + cluster_.wire().CountOf("together"), 0u);
}

TEST_P(TransactionTest, ATimestampThatCameWithTheLocksIsNotDrawnAgain) {
  cluster_.wire().DrawWithLocks();
  cluster_.wire().CountFromHere();
  const CommitResult result = Commit({Put("Bob", "3"), Put("Joe", "9")});
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(cluster_.wire().CountOf("timestamp"), 1u) << "that of the start";
  EXPECT_EQ(Now("Joe"), "9");
}

// H24
TEST_P(TransactionTest, AReadOnlyTransactionCommitsWithoutATimestamp) {
  MustSet({Put("Bob", "3")});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Bob"), "3");
  cluster_.wire().CountFromHere();
  const CommitResult result = t.Commit();
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp());
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
}

// T5
TEST_P(TransactionTest, TheFirstToCommitWins) {
  Transaction one(*cluster_);
  Transaction two(*cluster_);
  EXPECT_EQ(Get(one, "Bob"), std::nullopt);
  EXPECT_EQ(Get(two, "Bob"), std::nullopt);
  Buffer(one, {Put("Bob", "1")});
  Buffer(two, {Put("Bob", "2"), Put("Joe", "2")});
  ExpectOutcome(two.Commit(), Outcome::kCommitted);
  const CommitResult result = one.Commit();
  ExpectOutcome(result, Outcome::kAborted);
  ExpectConflict(result.status, Conflict::Kind::kNewerWrite, "Bob");
  EXPECT_EQ(Now("Bob"), "2");
  EXPECT_EQ(cluster_->metrics().commits, 1u);
  EXPECT_EQ(cluster_->metrics().conflicts, 1u);
}

// The start timestamp of a transaction that only writes is drawn at Commit, so it cannot conflict with earlier commits.
TEST_P(TransactionTest, ABlindWriteStartsAtCommit) {
  Transaction blind(*cluster_);
  Buffer(blind, {Put("Bob", "1")});
  MustSet({Put("Bob", "2")});
  ExpectOutcome(blind.Commit(), Outcome::kCommitted);
  EXPECT_EQ(Now("Bob"), "1");
}

TEST_P(TransactionTest, AfterTheCommitWritesFailAndCommitRepeatsItsAnswer) {
  Transaction t(*cluster_);
  Buffer(t, {Put("Bob", "1")});
  const CommitResult first = t.Commit();
  ExpectOutcome(first, Outcome::kCommitted);
  EXPECT_THAT(t.status(), IsOk());
  t.Set({kTable, "Bob", kColumn}, "2");
  EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  cluster_.wire().CountFromHere();
  const CommitResult again = t.Commit();  // the same answer, without any effect
  ExpectOutcome(again, Outcome::kCommitted);
  EXPECT_EQ(again.commit_ts, first.commit_ts);
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
  EXPECT_EQ(Now("Bob"), "1");
}

TEST_P(TransactionTest, ASecondCommitGivesTheSameAnswer) {
  Transaction t(*cluster_);
  Buffer(t, {Put("Bob", "3")});
  const CommitResult first = t.Commit();
  const CommitResult second = t.Commit();
  ExpectOutcome(first, Outcome::kCommitted);
  ExpectOutcome(second, Outcome::kCommitted);
  EXPECT_EQ(first.commit_ts, second.commit_ts);
  EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(TransactionTest, NoKindOfWriteIsAllowedAfterTheCommit) {
  const CellName bob{kTable, "Bob", kColumn};
  const std::function<void(Transaction&)> writes[] = {
      [&](Transaction& t) { t.Set(bob, "2"); },
      [&](Transaction& t) { t.Delete(bob); },
      [&](Transaction& t) { t.Verify(bob); },
      [&](Transaction& t) { t.Notify(bob); },
  };
  for (const auto& write : writes) {
    Transaction t(*cluster_);
    Buffer(t, {Put("Bob", "1")});
    ExpectOutcome(t.Commit(), Outcome::kCommitted);
    write(t);
    EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kFailedPrecondition));
    ExpectOutcome(t.Commit(), Outcome::kCommitted);  // the same answer
    EXPECT_EQ(Now("Bob"), "1");
  }
}

// A read after the commit returns the true value or an error.
TEST_P(TransactionTest, AReadAfterTheCommitIsTrueOrAnError) {
  Transaction t(*cluster_);
  Buffer(t, {Put("Bob", "a value that is longer than what a string holds within itself")});
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  const absl::StatusOr<std::optional<std::string>> value = t.Get({kTable, "Bob", kColumn});
  if (value.ok()) {
    EXPECT_EQ(*value, "a value that is longer than what a string holds within itself");
  } else {
    EXPECT_THAT(value, StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

// Its own writes are gone, so a scan must not end as if there were none.
TEST_P(TransactionTest, AScanThatContinuesAfterTheCommitFails) {
  Transaction t(*cluster_);
  Buffer(t, {Put("Ann", "1"), Put("Bob", "2")});
  RowScan rows = t.Scan(kTable);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end());
  ASSERT_THAT(*row, IsOk());
  EXPECT_EQ((*row)->key, "Ann");
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  ++row;
  ASSERT_TRUE(row != rows.end());
  EXPECT_THAT(*row, StatusIs(absl::StatusCode::kFailedPrecondition));
  ++row;
  EXPECT_TRUE(row == rows.end());
}

// --- Own writes (T9, H21).

TEST_P(TransactionTest, ReadsSeeOwnWrites) {
  MustSet({Put("Bob", "0")});
  Transaction t(*cluster_);
  Buffer(t, {Put("Bob", "1")});
  EXPECT_EQ(Get(t, "Bob"), "1");
  Buffer(t, {Del("Bob")});
  EXPECT_EQ(Get(t, "Bob"), std::nullopt);
  Buffer(t, {Put("Bob", "2"), Put("Joe", "2")});
  EXPECT_EQ(
      t.GetCells(std::vector<CellName>{{kTable, "Joe", kColumn}, {kTable, "Ann", kColumn}, {kTable, "Bob", kColumn}})
          .value(),
      (std::vector<std::optional<std::string>>{"2", std::nullopt, "2"}));
  EXPECT_EQ(Now("Bob"), "0");
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  EXPECT_EQ(Now("Bob"), "2");
}

TEST_P(TransactionTest, RepeatedWritesOfACellLeaveOneRecord) {
  Transaction t(*cluster_);
  for (int i = 0; i < 10; ++i) Buffer(t, {Put("Bob", std::to_string(i)), Del("Joe")});
  const CommitResult result = t.Commit();
  ExpectOutcome(result, Outcome::kCommitted);
  world_.runtime.LetOthersRun();
  EXPECT_EQ(CellsOf(world_.store.get(), "Bob"),
            StrCat("write@", result.commit_ts.ToString(), " put 9 from ", result.start_ts.ToString()));
}

// --- Values and names.

TEST_P(TransactionTest, ValuesOfAllSizes) {
  for (const size_t size : {0, 1, 255, 256, 257, 5000, 1 << 20}) {
    std::string value(size, 'v');
    if (size > 2) value[size / 2] = '\0';
    MustSet({Put("Bob", value), Put("Joe", value)});
    EXPECT_EQ(Now("Bob"), value) << size;
    EXPECT_EQ(Now("Joe"), value) << size;
  }
}

TEST_P(TransactionTest, NamesOfAnyBytes) {
  const std::vector<std::string> names = {"\x01", std::string("a\0b", 3), "\xff\xff", std::string("r\0", 2)};
  std::vector<PlannedWrite> writes;
  for (const std::string& row : names) {
    for (const std::string& column : names) writes.push_back(Put(row, row + "/" + column).Of(column));
  }
  MustSet(writes);
  for (const PlannedWrite& write : writes) EXPECT_EQ(Now(write.row, write.column), write.value);
}

TEST_P(TransactionTest, ACellThatWasDeletedComesBack) {
  MustSet({Put("Bob", "1")});
  MustSet({Del("Bob")});
  EXPECT_EQ(Now("Bob"), std::nullopt);
  MustSet({Del("Bob")});
  MustSet({Put("Bob", "2")});
  EXPECT_EQ(Now("Bob"), "2");
}

TEST_P(TransactionTest, SeveralTables) {
  ASSERT_THAT(cluster_->CreateTable("zoo"), IsOk());
  MustSet({Put("Bob", "3"), Put("Bob", "lion").In("zoo")});
  Transaction t(*cluster_);
  EXPECT_EQ(t.GetCells(std::vector<CellName>{{"zoo", "Bob", kColumn}, {kTable, "Bob", kColumn}}).value(),
            (std::vector<std::optional<std::string>>{"lion", "3"}));
}

TEST_P(TransactionTest, ManyCells) {
  std::vector<PlannedWrite> writes;
  for (int i = 0; i < 3000; ++i) writes.push_back(Put(StrCat("row", i % 1000), std::to_string(i)).Of(StrCat("c", i)));
  MustSet(writes);
  world_.runtime.LetOthersRun();
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  std::vector<CellName> cells;
  for (const PlannedWrite& write : writes) cells.push_back({write.table, write.row, write.column});
  Transaction t(*cluster_);
  const auto values = t.GetCells(cells);
  ASSERT_THAT(values, IsOk());
  for (size_t i = 0; i < writes.size(); ++i) ASSERT_EQ((*values)[i], writes[i].value);
}

// --- Snapshots do not change.

TEST_P(TransactionTest, ReadsAreRepeatable) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Bob"), "1");
  MustSet({Put("Bob", "2"), Put("Joe", "2"), Put("Ann", "2")});
  EXPECT_EQ(Get(t, "Bob"), "1");
  EXPECT_EQ(Get(t, "Joe"), "1");
  EXPECT_EQ(Get(t, "Ann"), std::nullopt);
}

// --- The read cache.

TEST_P(TransactionTest, ACellThatWasReadIsNotReadAgain) {
  MustSet({Put("Bob", "1"), Put("Joe", std::string(300, 'j'))});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Bob"), "1");
  EXPECT_EQ(Get(t, "Joe"), std::string(300, 'j'));
  EXPECT_EQ(Get(t, "Ann"), std::nullopt);
  const uint64_t reads = cluster_->metrics().store_reads;
  cluster_.wire().CountFromHere();
  EXPECT_EQ(Get(t, "Bob"), "1");
  EXPECT_EQ(Get(t, "Joe"), std::string(300, 'j'));
  EXPECT_EQ(Get(t, "Ann"), std::nullopt);
  EXPECT_EQ(t.GetCells(std::vector<CellName>{{kTable, "Bob", kColumn}, {kTable, "Ann", kColumn}}).value().size(), 2u);
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
  EXPECT_EQ(cluster_->metrics().store_reads, reads);
}

TEST_P(TransactionTest, OnlyMissingCellsAreRead) {
  MustSet({Put("Bob", "1"), Put("Joe", "2")});
  world_.runtime.LetOthersRun();
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Bob"), "1");
  Buffer(t, {Put("Ann", "3")});
  const uint64_t before = cluster_->metrics().store_reads;
  EXPECT_THAT(
      t.GetCells(std::vector<CellName>{{kTable, "Ann", kColumn}, {kTable, "Bob", kColumn}, {kTable, "Joe", kColumn}})
          .value(),
      ElementsAre("3", "1", "2"));
  EXPECT_EQ(cluster_->metrics().store_reads, before + 1);
}

// The cache has a limit. Cells beyond it are read again, with the same result.
TEST_P(TransactionTest, ReadsBeyondTheCacheAreTheSame) {
  const std::string large(6 << 20, 'x');
  MustSet({Put("a", large)});
  MustSet({Put("b", large)});
  MustSet({Put("c", large)});
  MustSet({Put("d", "small")});
  Transaction t(*cluster_);
  for (int round = 0; round < 2; ++round) {
    for (const char* row : {"a", "b", "c"}) ASSERT_EQ(Get(t, row)->size(), large.size());
    EXPECT_EQ(Get(t, "d"), "small");
  }
  Buffer(t, {Relied("a", 0), Put("d", "other")});
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  EXPECT_EQ(Now("a"), large);
}

TEST_P(TransactionTest, TheSameCellTwiceInOneGet) {
  MustSet({Put("Bob", "1")});
  Transaction t(*cluster_);
  EXPECT_THAT(
      t.GetCells(std::vector<CellName>{{kTable, "Bob", kColumn}, {kTable, "Joe", kColumn}, {kTable, "Bob", kColumn}})
          .value(),
      ElementsAre("1", std::nullopt, "1"));
  EXPECT_THAT(t.GetCells(std::vector<CellName>()).value(), IsEmpty());
}

// --- Verify: write skew is impossible where Verify is called (H12, H18).

TEST_P(TransactionTest, WriteSkewHappensWithoutVerify) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  Transaction one(*cluster_);
  Transaction two(*cluster_);
  EXPECT_EQ(Get(one, "Bob"), "1");
  EXPECT_EQ(Get(two, "Joe"), "1");
  Buffer(one, {Put("Joe", "0")});
  Buffer(two, {Put("Bob", "0")});
  ExpectOutcome(one.Commit(), Outcome::kCommitted);
  ExpectOutcome(two.Commit(), Outcome::kCommitted);
}

TEST_P(TransactionTest, VerifyPreventsWriteSkew) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  for (const bool one_first : {true, false}) {
    Transaction one(*cluster_);
    Transaction two(*cluster_);
    EXPECT_EQ(Get(one, "Bob"), "1");
    EXPECT_EQ(Get(two, "Joe"), "1");
    Buffer(one, {Relied("Bob", 0), Put("Joe", "1")});
    Buffer(two, {Put("Bob", "1")});
    Transaction& first = one_first ? one : two;
    Transaction& second = one_first ? two : one;
    ExpectOutcome(first.Commit(), Outcome::kCommitted);
    const CommitResult result = second.Commit();
    ExpectOutcome(result, Outcome::kAborted);
    ExpectConflict(result.status, Conflict::Kind::kNewerWrite, "Bob");
  }
}

TEST_P(TransactionTest, AVerifiedCellKeepsItsValue) {
  for (const std::string& value : {std::string("short"), std::string(300, 'l')}) {
    MustSet({Put("Bob", value)});
    MustSet({Relied("Bob", 0), Put("Joe", "1")});
    MustSet({Relied("Bob", 0), Relied("Nobody", 0)});
    EXPECT_EQ(Now("Bob"), value);
    EXPECT_EQ(Now("Nobody"), std::nullopt);
    Transaction t(*cluster_);
    EXPECT_EQ(Get(t, "Bob"), value);
  }
  MustSet({Del("Bob")});
  MustSet({Relied("Bob", 0)});
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

// A cell that the transaction has not read is read for the verification.
TEST_P(TransactionTest, ACellThatWasNotReadCanBeVerified) {
  MustSet({Put("Bob", "1")});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Joe"), std::nullopt);  // starts
  Buffer(t, {Relied("Bob", 0)});
  MustSet({Put("Bob", "2")});
  ExpectConflict(t.Commit().status, Conflict::Kind::kNewerWrite, "Bob");
}

TEST_P(TransactionTest, AWriteAlsoVerifies) {
  MustSet({Put("Bob", "1")});
  Transaction t(*cluster_);
  Buffer(t, {Relied("Bob", 0), Put("Bob", "2"), Relied("Bob", 0)});
  EXPECT_EQ(Get(t, "Bob"), "2");
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  EXPECT_EQ(Now("Bob"), "2");
}

TEST_P(TransactionTest, AVerifyThatTimesOutAborts) {
  Process stuck(&world_, Options(false));
  Transaction holder(*stuck);
  Buffer(holder, {Put("Bob", "1")});
  stuck.wire().FailAt(kCommitsPrimary, {.kind = Kind::kDieBefore});
  (void)holder.Commit();
  Transaction t(*cluster_, {.timeout = seconds(1)});
  EXPECT_EQ(Get(t, "Joe"), std::nullopt);
  Buffer(t, {Relied("Bob", 0)});
  const CommitResult result = t.Commit();
  ExpectOutcome(result, Outcome::kAborted);
  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  stuck.Die();
}

// --- Deadlines.

TEST_P(TransactionTest, AReadThatMeetsALockFailsAtItsDeadline) {
  Process stuck(&world_, Options(false));
  Transaction holder(*stuck);
  Buffer(holder, {Put("Bob", "1")});
  stuck.wire().FailAt(kCommitsPrimary, {.kind = Kind::kDieBefore});
  (void)holder.Commit();
  const Duration begun = world_.runtime.Elapsed();
  Transaction t(*cluster_, {.timeout = seconds(2)});
  EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_GE(world_.runtime.Elapsed() - begun, seconds(2));
  EXPECT_LT(world_.runtime.Elapsed() - begun, seconds(3));
  // With a longer timeout the lease passes, and the reader resolves the lock.
  Transaction patient(*cluster_, {.timeout = seconds(60)});
  EXPECT_EQ(Get(patient, "Bob"), std::nullopt);
  stuck.Die();
}

TEST_P(TransactionTest, ACallEndsAtItsTimeout) {
  ClusterOptions options = Options(GetParam());
  options.call_timeout = seconds(3);
  Process process(&world_, options);
  process.wire().FailFrom(2, {.kind = Kind::kLoseRequest});
  Transaction t(*process, {.timeout = seconds(1000)});
  const Duration begun = world_.runtime.Elapsed();
  EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(world_.runtime.Elapsed() - begun, seconds(3));
  EXPECT_LT(world_.runtime.Elapsed() - begun, seconds(4));
}

TEST_P(TransactionTest, WithoutAnOracleNoTransactionStarts) {
  world_.oracle.AnswerWith(absl::UnavailableError("no oracle"));
  Transaction t(*cluster_, {.timeout = seconds(2)});
  EXPECT_THAT(t.Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(world_.runtime.Elapsed(), seconds(2));
  Buffer(t, {Put("Bob", "1")});
  ExpectOutcome(t.Commit(), Outcome::kAborted);
  world_.oracle.AnswerWith(absl::OkStatus());
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

TEST_P(TransactionTest, AnOracleThatFailsBrieflyIsTriedAgain) {
  Transaction t(*cluster_);
  Buffer(t, {Put("Bob", "1")});
  cluster_.wire().CountFromHere();
  cluster_.wire().FailAt({"timestamp", 1}, {.kind = Kind::kLoseRequest});
  cluster_.wire().FailAt({"timestamp", 3}, {.kind = Kind::kLoseReply});
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
}

// The longest timeout means no deadline.
TEST_P(TransactionTest, TheLongestTimeoutMeansNoDeadline) {
  MustSet({Put("Bob", "1")});
  world_.runtime.Sleep(seconds(1));
  Transaction t(*cluster_, {.timeout = Duration::max()});
  cluster_.wire().CountFromHere();
  cluster_.wire().FailAt({"read", 1}, {.kind = Kind::kLoseRequest});
  EXPECT_EQ(Get(t, "Bob"), "1");
}

// --- Three outcomes (T10).

TEST_P(TransactionTest, AnUnreachablePrimaryMeansUnknownAndResolveFindsTheOutcome) {
  for (const bool applied : {true, false}) {
    SCOPED_TRACE(applied);
    Process process(&world_, Options(GetParam()));
    Transaction t(*process, {.timeout = seconds(5)});
    const std::string row = applied ? "Bob" : "Joe";
    Buffer(t, {Put(row, "3"), Put("zz" + row, "3")});
    const Wire::Place place = GetParam() ? kCommitsTogether : kCommitsPrimary;
    process.wire().Before(place, [&] { process.wire().FailFrom(1, {.kind = Kind::kLoseRequest}); });
    process.wire().FailAt(place, {.kind = applied ? Kind::kLoseReply : Kind::kLoseRequest});
    const CommitResult result = t.Commit();
    ExpectOutcome(result, Outcome::kUnknown);
    EXPECT_THAT(std::string(result.status.message()), HasSubstr("Resolve"));
    EXPECT_EQ(process->metrics().unknown_outcomes, 1u);
    EXPECT_THAT(process->Resolve(result), StatusIs(absl::StatusCode::kUnavailable));
    process.wire().ForgetFaults();
    const absl::StatusOr<CommitResult> resolved = cluster_->Resolve(result);  // any client may ask
    ASSERT_THAT(resolved, IsOk());
    ExpectOutcome(*resolved, applied ? Outcome::kCommitted : Outcome::kAborted);
    EXPECT_EQ(Now(row).has_value(), applied);
    EXPECT_EQ(Now("zz" + row).has_value(), applied);
    const absl::StatusOr<CommitResult> again = process->Resolve(result);
    ASSERT_THAT(again, IsOk());
    ExpectOutcome(*again, resolved->outcome);
    EXPECT_EQ(again->commit_ts, resolved->commit_ts);
  }
}

TEST_P(TransactionTest, ResolveOfAKnownOutcomeReturnsIt) {
  const CommitResult committed = Commit({Put("Bob", "1")});
  cluster_.wire().CountFromHere();
  EXPECT_EQ(cluster_->Resolve(committed)->commit_ts, committed.commit_ts);
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
}

TEST_P(TransactionTest, AnAbortedTransactionLeavesNoLock) {
  MustSet({Put("Joe", "0")});
  Transaction t(*cluster_);
  EXPECT_EQ(Get(t, "Joe"), "0");
  Buffer(t, {Put("Ann", "1"), Put("Joe", "1"), Put("Zoe", std::string(300, 'z'))});
  MustSet({Put("Joe", "2")});
  ExpectOutcome(t.Commit(), Outcome::kAborted);
  world_.runtime.LetOthersRun();
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
  EXPECT_EQ(CellsOf(world_.store.get(), "Zoe").find("data"), std::string::npos);
  EXPECT_EQ(Now("Ann"), std::nullopt);
}

}  // namespace
}  // namespace percolator
