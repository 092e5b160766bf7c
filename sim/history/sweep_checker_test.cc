// SPDX-License-Identifier: Apache-2.0

#include "sim/history/sweep_checker.h"

#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/history/play.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Findings Sweep(std::string_view script) { return CheckSweep(Play(script)); }

TEST(SweepCheckerTest, NothingIsFine) {
  EXPECT_TRUE(CheckSweep({}).ok());
  EXPECT_TRUE(Sweep("b0 c0 b1 f1 b2 i2").ok());
}

TEST(SweepCheckerTest, ReadsSeeTheNewestCommit) {
  EXPECT_TRUE(Sweep("r9[x]  w0[x=a] c0  b1 r2[x=a] w2[x=b] c2  r1[x=a] c1  w3[x] c3  r4[x] c4  c9").ok());
}

TEST(SweepCheckerTest, WrongRead) {
  const Findings old = Sweep("w0[x=a] c0  w1[x=b] c1  r2[x=a] c2");
  ASSERT_THAT(old.Names(), ElementsAre("wrong-read"));
  EXPECT_THAT(old.anomalies()[0].transactions, ElementsAre(2, 1));
  EXPECT_THAT(old.anomalies()[0].text, HasSubstr("read x = \"a\"; the newest there is \"b\", by T1"));
  EXPECT_THAT(old.anomalies()[0].text, HasSubstr("written by T0 (process 0, ok"));

  EXPECT_THAT(Sweep("w0[x=a] c0  b1 w2[x=b] c2 r1[x=b] c1").Names(), ElementsAre("wrong-read")) << "too new";
  EXPECT_THAT(Sweep("w0[x=a] f0  r1[x=a] c1").Names(), ElementsAre("wrong-read")) << "its writer failed";
  EXPECT_THAT(Sweep("w0[x=a] c0  r1[x] c1").Names(), ElementsAre("wrong-read")) << "absent";
  EXPECT_THAT(Sweep("r1[x=a] c1").Names(), ElementsAre("wrong-read")) << "from nowhere";
  EXPECT_THAT(Sweep("w0[x=a] c0  r1[x] f1").Names(), ElementsAre("wrong-read")) << "its reader failed";
  EXPECT_THAT(Sweep("w0[x=a] c0  r1[x] i1").Names(), ElementsAre("wrong-read")) << "its reader got no answer";
}

TEST(SweepCheckerTest, ValuesNeedNotBeUnique) {
  EXPECT_TRUE(Sweep("w0[x=a] c0  w1[x=b] c1  w2[x=a] c2  r3[x=a] c3").ok());
}

TEST(SweepCheckerTest, Internal) {
  EXPECT_THAT(Sweep("w0[x=a] r0[x=b] c0").Names(), ElementsAre("internal"));
  EXPECT_THAT(Sweep("w0[x=a] c0  r1[x=a] r1[x] c1").Names(), ElementsAre("internal"));
  History history = Play("w0[x=a] r0[x=b] f0");
  history.transactions[0].start_ts = Timestamp();
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("internal")) << "also without a start timestamp";
}

TEST(SweepCheckerTest, OverlappingWriters) {
  const Findings findings = Sweep("b0 b1 w0[x=a] w1[x=b] c0 c1");
  ASSERT_THAT(findings.Names(), ElementsAre("overlapping-writers"));
  EXPECT_THAT(findings.anomalies()[0].transactions, ElementsAre(0, 1));
  EXPECT_TRUE(Sweep("b0 b1 w0[x=a] w1[x=b] c0 f1").ok());
  EXPECT_TRUE(Sweep("b0 b1 w0[x=a] w1[y=b] c0 c1").ok());
  EXPECT_TRUE(Sweep("w0[x=a] c0  w1[x=b] c1").ok());
}

TEST(SweepCheckerTest, OverlappingVerify) {
  EXPECT_THAT(Sweep("b0 b1 r0[x] v0[x] w1[x=b] c1 c0").Names(), ElementsAre("overlapping-writers"));
  EXPECT_THAT(Sweep("b0 b1 r0[x] v0[x] w1[x=b] c0 c1").Names(), ElementsAre("overlapping-writers"));
  EXPECT_TRUE(Sweep("b0 b1 r0[x] v0[x] r1[x] v1[x] c0 c1").ok()) << "two transactions that verify do not conflict";
  EXPECT_TRUE(Sweep("r0[x] v0[x] w0[x=a] c0  r1[x=a] v1[x] c1  r2[x=a] w2[x=b] c2").ok());
}

TEST(SweepCheckerTest, RealTime) {
  History history = Play("w0[x=a] c0  w1[y=a] c1  r2[z] c2");
  ASSERT_TRUE(CheckSweep(history).ok());
  const Timestamp before_t1 = Timestamp(history.transactions[1].start_ts.value());
  history.transactions[1].start_ts = history.transactions[2].start_ts;
  history.transactions[1].commit_ts = Timestamp(history.transactions[2].start_ts.value() + 1);
  history.transactions[2].start_ts = before_t1;
  const Findings findings = CheckSweep(history);
  ASSERT_THAT(findings.Names(), ElementsAre("real-time"));
  EXPECT_THAT(findings.anomalies()[0].transactions, ElementsAre(1, 2));

  history.transactions[1].Resolve(TxnOutcome::kOk, history.transactions[1].commit_ts);
  EXPECT_TRUE(CheckSweep(history).ok()) << "its client did not wait for it";
}

TEST(SweepCheckerTest, RealTimeDoesNotBindATransactionWithoutAnAnswer) {
  History history = Play("w0[x=a] i0  r1[x] c1  r2[x=a] c2");
  history.transactions[0].commit_ts = Timestamp(history.transactions[1].start_ts.value() + 1);
  EXPECT_TRUE(CheckSweep(history).ok()) << CheckSweep(history) << "committed after its client was gone";
  std::swap(history.transactions[0].start_ts, history.transactions[1].start_ts);
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("real-time")) << "but it started while its client lived";
}

TEST(SweepCheckerTest, RealTimeBindsReadersToo) {
  History history = Play("r0[x] c0  r1[x] c1");
  std::swap(history.transactions[0].start_ts, history.transactions[1].start_ts);
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("real-time"));
}

TEST(SweepCheckerTest, SnapshotsOfThePast) {
  History history = Play("w0[x=a] c0  w1[x=b] c1  r2[x=a] c2");
  history.transactions[2].as_of = true;
  history.transactions[2].start_ts = history.transactions[0].commit_ts;  // includes it
  EXPECT_TRUE(CheckSweep(history).ok()) << CheckSweep(history);
  history.transactions[2].start_ts = history.transactions[1].commit_ts;
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("wrong-read"));
}

TEST(SweepCheckerTest, DuplicateTimestamp) {
  History history = Play("w0[x=a] c0  b1 w2[y=a] c2 c1");
  history.transactions[1].start_ts = history.transactions[2].start_ts;
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("duplicate-timestamp"));
}

TEST(SweepCheckerTest, CommitBeforeStart) {
  History history = Play("w0[x=a] c0");
  std::swap(history.transactions[0].start_ts, history.transactions[0].commit_ts);
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("commit-before-start"));
  history.transactions[0].start_ts = history.transactions[0].commit_ts;
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("commit-before-start"));
}

TEST(SweepCheckerTest, MissingTimestamp) {
  History history = Play("w0[x=a] c0");
  history.transactions[0].commit_ts = Timestamp();
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("missing-timestamp"));
  history = Play("r0[x] c0");
  history.transactions[0].start_ts = Timestamp();
  EXPECT_THAT(CheckSweep(history).Names(), ElementsAre("missing-timestamp"));
  history.transactions[0].outcome = TxnOutcome::kFail;
  EXPECT_TRUE(CheckSweep(history).ok()) << "it may have failed before it had one";
}

TEST(SweepCheckerTest, Lists) {
  EXPECT_TRUE(Sweep("+0[x=1] c0  r1[x=1] +1[x=2] r1[x=1,2] c1  r2[x=1,2] c2").ok());
  EXPECT_TRUE(Sweep("+0[x=1] c0  +1[x=2] +1[x=3] c1  r2[x=1,2,3] c2").ok()) << "appended without reading";
  EXPECT_TRUE(Sweep("+0[x=1] c0  +1[x=2] r1[x=1,2] c1  r2[x=1,2] c2").ok());
  EXPECT_THAT(Sweep("+0[x=1] c0  +1[x=2] c1  r2[x=2] c2").Names(), ElementsAre("wrong-read"));
  EXPECT_THAT(Sweep("+0[x=1] c0  +1[x=2] r1[x=2] c1").Names(), ElementsAre("wrong-read"));
}

// Without a commit timestamp, both values are possible from its start on, until a later write covers them.
TEST(SweepCheckerTest, UnknownOutcomeWithoutTimestamp) {
  EXPECT_TRUE(Sweep("w0[x=a] c0  w1[x=b] i1  r2[x=a] c2  r3[x=b] c3").ok());
  EXPECT_TRUE(Sweep("w0[x=a] c0  w1[x=b] i1  r2[x=b] w2[x=c] c2  r3[x=c] c3").ok());
  EXPECT_THAT(Sweep("w0[x=a] c0  w1[x=b] i1  r2[x=z] c2").Names(), ElementsAre("wrong-read"));
  EXPECT_THAT(Sweep("w0[x=a] c0  r2[x=b] c2  w1[x=b] i1").Names(), ElementsAre("wrong-read")) << "before it started";
  EXPECT_THAT(Sweep("w0[x=a] c0  w1[x=b] i1  w2[x=c] c2  r3[x=b] c3").Names(), ElementsAre("wrong-read")) << "covered";
}

TEST(SweepCheckerTest, UnknownOutcomeWithoutAnyTimestamp) {
  History history = Play("w0[x=a] c0  w1[x=b] i1  w2[x=c] c2  r3[x=b] c3  r4[x=z] c4");
  history.transactions[1].start_ts = Timestamp();
  const Findings findings = CheckSweep(history);
  EXPECT_THAT(findings.Names(), ElementsAre("wrong-read"));
  EXPECT_EQ(findings.Count("wrong-read"), 1U) << "T1's value may be there at any time, but z never";
}

// With a commit timestamp it counts as committed as soon as a transaction saw what only it wrote.
TEST(SweepCheckerTest, UnknownOutcomeThatWasSeen) {
  const auto play = [](std::string_view script) {
    History history = Play(script);
    TxnRecord& unknown = history.transactions[1];
    unknown.commit_ts = Timestamp(unknown.complete + 1);
    return history;
  };
  EXPECT_TRUE(CheckSweep(play("w0[x=a] w0[y=a] c0  w1[x=b] w1[y=b] i1  r2[x=b] r2[y=b] c2")).ok());
  EXPECT_TRUE(CheckSweep(play("w0[x=a] w0[y=a] c0  w1[x=b] w1[y=b] i1  r2[x=a] r2[y=a] c2")).ok());
  EXPECT_THAT(CheckSweep(play("w0[x=a] w0[y=a] c0  w1[x=b] w1[y=b] i1  r2[x=b] r2[y=a] c2")).Names(),
              ElementsAre("wrong-read"));
  EXPECT_THAT(CheckSweep(play("w0[x=a] c0  b2 w1[x=b] i1  r3[x=b] c3  w2[x=c] c2")).Names(),
              ElementsAre("overlapping-writers"));
  // Others wrote the same value, so a read of it proves nothing.
  EXPECT_TRUE(CheckSweep(play("w0[x=a] w0[y=a] c0  w1[x=a] w1[y=b] i1  r2[x=a] r2[y=a] c2")).ok());
}

TEST(SweepCheckerTest, AppendToAnUncertainList) {
  // T2 appended blindly to "1" or to "1 2". T3 reveals which; after that the list is certain.
  EXPECT_TRUE(Sweep("+0[x=1] c0  r1[x=1] +1[x=2] i1  +2[x=3] c2  r3[x=1,2,3] c3  r4[x=1,2,3] c4").ok());
  EXPECT_TRUE(Sweep("+0[x=1] c0  r1[x=1] +1[x=2] i1  +2[x=3] c2  r3[x=1,3] c3").ok());
  EXPECT_THAT(Sweep("+0[x=1] c0  r1[x=1] +1[x=2] i1  +2[x=3] c2  r3[x=1,3] c3  r4[x=1,2,3] c4").Names(),
              ElementsAre("wrong-read"));
  EXPECT_THAT(Sweep("+0[x=1] c0  r1[x=1] +1[x=2] i1  +2[x=3] c2  r3[x=1,2] c3").Names(), ElementsAre("wrong-read"));
}

}  // namespace
}  // namespace percolator
