// SPDX-License-Identifier: Apache-2.0

#include "sim/history/graph_checker.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/history/play.h"

namespace percolator {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

Findings Graph(std::string_view script) { return CheckGraph(Play(script)).findings; }

// The last transaction is the final read.
Findings GraphWithFinalRead(std::string_view script) {
  const History history = Play(script);
  return CheckGraph(history, {.final_read = static_cast<TxnId>(history.transactions.size() - 1)}).findings;
}

const Anomaly& Named(const Findings& findings, std::string_view name) {
  const auto it = std::find_if(findings.anomalies().begin(), findings.anomalies().end(),
                               [&](const Anomaly& anomaly) { return anomaly.name == name; });
  EXPECT_NE(it, findings.anomalies().end()) << "no " << name << " in\n" << findings;
  static const Anomaly kNone;
  return it == findings.anomalies().end() ? kNone : *it;
}

TEST(GraphCheckerTest, NothingIsFine) {
  EXPECT_TRUE(CheckGraph({}).findings.ok());
  EXPECT_TRUE(Graph("b0 c0 b1 f1 b2 i2").ok());
}

TEST(GraphCheckerTest, Internal) {
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=1] r1[x] c1").Names(), ElementsAre("internal"));
  EXPECT_THAT(Graph("+0[x=1] r0[x] c0").Names(), ElementsAre("internal")) << "its own append is missing";
  EXPECT_THAT(Graph("+0[x=1] c0  +1[x=21] r1[x=1] c1").Names(), ElementsAre("internal")) << "21 does not end with 1";
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=1] r1[x] f1").Names(), ElementsAre("internal")) << "also if it fails";
}

TEST(GraphCheckerTest, OwnAppendsAreTakenOff) {
  EXPECT_TRUE(Graph("+0[x=1] c0  +1[x=2] +1[x=3] r1[x=1,2,3] c1  r2[x=1,2,3] c2").ok());
  // What remains is what it saw of others; here it overlooked T0.
  EXPECT_THAT(Graph("+0[x=1] c0  +1[x=2] r1[x=2] c1  r2[x=1,2] c2").Names(), ElementsAre("G-single"));
}

TEST(GraphCheckerTest, FutureRead) {
  const Findings findings = Graph("+0[x=1] c0  r1[x=1,2] +1[x=2] c1");
  EXPECT_THAT(Named(findings, "future-read").transactions, ElementsAre(1));
}

TEST(GraphCheckerTest, DuplicateElement) {
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=1,1] c1").Names(), Contains("duplicate-element"));
}

TEST(GraphCheckerTest, GarbageRead) {
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=1,9] c1").Names(), Contains("garbage-read"));
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=one] c1").Names(), Contains("garbage-read"));
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=01] c1").Names(), Contains("garbage-read"));
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x=01,2] c1  r2[x=1] c2").Names(), ElementsAre("garbage-read"));
}

TEST(GraphCheckerTest, G1a) {
  const Findings findings = Graph("+0[x=1] c0  b1 +2[x=2] r1[x=1,2] f2 c1");
  EXPECT_THAT(findings.Names(), ElementsAre("G1a"));
  EXPECT_THAT(Named(findings, "G1a").transactions, ElementsAre(1, 2));
  EXPECT_EQ(Named(findings, "G1a").text, "T1 read x = \"1 2\"; 2 in it was appended by T2, which failed");
}

TEST(GraphCheckerTest, G1aInTheMiddleOfAListAndForEachReader) {
  const Findings findings = Graph("+0[x=1] f0  b2 +1[x=2] c1  r2[x=1] c2  r3[x=1,2] c3");
  EXPECT_EQ(findings.Count("G1a"), 2U) << findings;
  EXPECT_THAT(findings.Names(), ElementsAre("G1a", "dirty-update"));
}

TEST(GraphCheckerTest, G1b) {
  const Findings findings = Graph("b0 +0[x=1] r1[x=1] c1 +0[x=2] c0");
  EXPECT_THAT(Named(findings, "G1b").transactions, ElementsAre(1, 0));
  EXPECT_THAT(findings.Names(), Not(Contains("non-atomic"))) << findings;
}

TEST(GraphCheckerTest, IncompatibleOrder) {
  const Findings findings = Graph("b0 b1 b2 b3 +0[x=1] +1[x=2] c0 c1 r2[x=1] r3[x=2] c2 c3");
  EXPECT_THAT(findings.Names(), Contains("incompatible-order"));
  EXPECT_THAT(Graph("+0[x=1] +0[x=2] c0  r1[x=2,1] c1").Names(), Contains("incompatible-order")) << "swapped";
}

TEST(GraphCheckerTest, LostUpdate) {
  const Findings findings = Graph("r0[x] r1[x] +0[x=1] +1[x=2] c0 c1");
  EXPECT_THAT(findings.Names(), ElementsAre("lost-update"));
  EXPECT_THAT(Named(findings, "lost-update").transactions, ElementsAre(0, 1));
  EXPECT_TRUE(Graph("r0[x] r1[x] +0[x=1] +1[x=2] c0 f1").ok());
  EXPECT_TRUE(Graph("r0[x] r1[x] +0[x=1] +1[x=2] c0 i1").ok()) << "T1's append was never read";
}

TEST(GraphCheckerTest, LostUpdateByATransactionWhoseWriteWasSeen) {
  EXPECT_THAT(Graph("r0[x] r1[x] +0[x=1] +1[x=2] c0 i1  r2[x=1,2] c2").Names(), Contains("lost-update"));
}

TEST(GraphCheckerTest, LostWrite) {
  const Findings findings = GraphWithFinalRead("+0[x=1] c0  +1[x=2] c1  r2[x=1] c2");
  EXPECT_THAT(findings.Names(), UnorderedElementsAre("lost-write", "G-single-realtime"));
  EXPECT_THAT(Named(findings, "lost-write").transactions, ElementsAre(1, 2));
  EXPECT_TRUE(GraphWithFinalRead("+0[x=1] c0  +1[x=2] f1  +2[x=3] i2  r3[x=1] c3").ok());
  EXPECT_TRUE(GraphWithFinalRead("+0[x=1] +0[y=1] c0  r1[x=1] c1").ok()) << "y was not read";
}

TEST(GraphCheckerTest, NonAtomic) {
  EXPECT_THAT(GraphWithFinalRead("+0[x=1] +0[y=1] i0  r1[x=1] r1[y] c1").Names(), Contains("non-atomic"));
  EXPECT_TRUE(GraphWithFinalRead("+0[x=1] +0[y=1] i0  r1[x=1] r1[y=1] c1").ok());
  EXPECT_TRUE(GraphWithFinalRead("+0[x=1] +0[y=1] i0  r1[x] r1[y] c1").ok());
  // Also seen without a final read: if x is there, y must be.
  EXPECT_THAT(Graph("+0[x=1] +0[y=1] i0  r1[x=1] r1[y] c1").Names(), ElementsAre("G-single"));
}

TEST(GraphCheckerTest, NonAtomicWithinAKey) {
  EXPECT_THAT(Graph("+0[x=1] +0[x=2] c0  r1[x=2] c1").Names(), Contains("non-atomic"));
  EXPECT_THAT(Graph("+0[x=1] +0[x=2] i0  +1[x=3] c1  r2[x=1,3] c2").Names(), Contains("non-atomic"));
  EXPECT_THAT(Graph("+0[x=1] +0[x=2] +0[x=3] +0[x=4] c0  r1[x=2,1,3] c1").Names(), Contains("non-atomic"));
}

TEST(GraphCheckerTest, DirtyUpdate) {
  const Findings findings = Graph("b0 +0[x=1] b1 +1[x=2] f0 c1  r2[x=1,2] c2");
  EXPECT_THAT(findings.Names(), UnorderedElementsAre("dirty-update", "G1a"));
  EXPECT_THAT(Named(findings, "dirty-update").transactions, ElementsAre(0, 1));
}

TEST(GraphCheckerTest, DuplicateAppend) {
  EXPECT_THAT(Graph("+0[x=1] c0  +1[x=1] c1").Names(), Contains("duplicate-append"));
  EXPECT_TRUE(Graph("+0[x=1] c0  +1[y=1] c1").ok()) << "unique by key";
}

TEST(GraphCheckerTest, G0) {
  const Findings findings = Graph("b0 b1 +0[x=1] +1[x=2] +1[y=2] +0[y=1] c0 c1  r2[x=1,2] r2[y=2,1] c2");
  EXPECT_THAT(findings.Names(), ElementsAre("G0"));
  EXPECT_THAT(Named(findings, "G0").transactions, UnorderedElementsAre(0, 1));
}

TEST(GraphCheckerTest, G0RealTime) {
  EXPECT_THAT(Graph("b9 +0[x=1] c0  +1[x=2] c1 r9[x=2,1] c9").Names(), ElementsAre("G0-realtime"));
}

TEST(GraphCheckerTest, G1c) {
  const Findings findings = Graph("b0 b1 +0[x=1] +1[y=1] r0[y=1] r1[x=1] c0 c1");
  EXPECT_THAT(findings.Names(), ElementsAre("G1c"));
}

TEST(GraphCheckerTest, G1cRealTime) {
  EXPECT_THAT(Graph("r0[x=1] c0  +1[x=1] c1").Names(), ElementsAre("G1c-realtime")) << "it saw the future";
}

TEST(GraphCheckerTest, GSingle) {
  const Findings findings = Graph("b0 b1 +0[x=1] +0[y=1] c0 r1[x=1] r1[y] c1  r2[y=1] c2");
  EXPECT_THAT(findings.Names(), ElementsAre("G-single"));
  const std::string& text = Named(findings, "G-single").text;
  EXPECT_THAT(text, HasSubstr("no order of starts and commits agrees with all of this:"));
  EXPECT_THAT(text, HasSubstr("T1 read x = \"1\" with 1 that T0 appended: T0 committed before T1 started"));
  EXPECT_THAT(text, HasSubstr("T1 read y = \"\" without 1 that T0 appended: T1 started before T0 committed"));
}

TEST(GraphCheckerTest, GSingleOverThreeTransactions) {
  // T1 overlooked T2's append to z, T3 saw it, and T1 appended to w after T3.
  const Findings findings = Graph(
      "+0[v=1] +0[v=3] +0[v=4] +0[z=2] +0[z=5] +0[w=1] +0[w=2] c0  b1 b2 b3"
      "  +1[u=10] r1[v=1,3,4] r1[z=2,5] +1[w=3]  +2[z=8] r2[v=1,3,4] c2"
      "  +3[w=4] r3[z=2,5,8] r3[w=1,2,4] r3[v=1,3,4] c3  c1  r4[w=1,2,4,3] c4");
  EXPECT_THAT(findings.Names(), ElementsAre("G-single"));
  EXPECT_THAT(Named(findings, "G-single").transactions, UnorderedElementsAre(1, 2, 3));
}

TEST(GraphCheckerTest, GSingleRealTime) {
  const Findings findings = Graph("+0[x=1] c0  r1[x] c1");
  EXPECT_THAT(findings.Names(), ElementsAre("G-single-realtime"));
  EXPECT_THAT(Named(findings, "G-single-realtime").text, HasSubstr("T0 was over before T1 was invoked"));
}

TEST(GraphCheckerTest, RealTimeOverManyTransactionsIsReportedInOneLine) {
  const Findings findings = Graph("+0[x=1] c0  b1 c1  b2 c2  b3 c3  r4[x] c4");
  EXPECT_THAT(Named(findings, "G-single-realtime").transactions, UnorderedElementsAre(0, 4)) << findings;
}

TEST(GraphCheckerTest, GNonadjacent) {
  const Findings findings = Graph("b0 b1 b2 b3 +0[x=1] +1[y=1] c0 c1 r2[x=1] r2[y] c2 r3[x] r3[y=1] c3");
  EXPECT_THAT(findings.Names(), ElementsAre("G-nonadjacent"));
  EXPECT_THAT(Named(findings, "G-nonadjacent").transactions, UnorderedElementsAre(0, 1, 2, 3));
}

TEST(GraphCheckerTest, GNonadjacentRealTime) {
  // T2 saw T0 but not T1; T3, which began when T1 was over, did not see T0.
  const Findings findings = Graph("b0 b2 +0[x=1] +1[y=1] c1  r3[x] c3  r2[x=1] r2[y] c2 c0");
  ASSERT_THAT(findings.Names(), ElementsAre("G-nonadjacent-realtime"));
  EXPECT_THAT(findings.anomalies()[0].transactions, UnorderedElementsAre(0, 1, 2, 3));
}

TEST(GraphCheckerTest, TheCycleWithoutRealTimeIsReported) {
  EXPECT_THAT(Graph("+0[x=1] +0[y=1] c0  r1[x=1] r1[y] c1").Names(), ElementsAre("G-single"));
}

TEST(GraphCheckerTest, EachDisjointCycleIsReported) {
  const Findings findings =
      Graph("b0 b1 b2 b3 +0[x=1] r0[y=1] +1[y=1] r1[x=1] c0 c1 +2[u=1] r2[v=1] +3[v=1] r3[u=1] c2 c3");
  EXPECT_EQ(findings.Count("G1c"), 2U) << findings;
}

TEST(GraphCheckerTest, ReadsOfFailedTransactionsCount) {
  EXPECT_THAT(Graph("+0[x=1] +0[y=1] c0  r1[x=1] r1[y] f1").Names(), ElementsAre("G-single"));
  EXPECT_THAT(Graph("+0[x=1] c0  r1[x] i1").Names(), ElementsAre("G-single-realtime"));
}

TEST(GraphCheckerTest, ATransactionWithoutAnAnswerMayCommitLater) {
  EXPECT_TRUE(Graph("+0[x=1] i0  r1[x] c1  r2[x=1] c2").ok());
  EXPECT_THAT(Graph("+0[x=1] i0  r1[x=1] c1  r2[x] c2").Names(), ElementsAre("G-single-realtime"));
}

TEST(GraphCheckerTest, TheFutureIsNotBoundByReadsOfThePast) {
  History history = Play("+0[x=1] c0  +1[x=2] c1  r2[x=1] c2  r3[x=1,2] c3");
  EXPECT_FALSE(CheckGraph(history).findings.ok());
  history.transactions[2].as_of = true;
  EXPECT_TRUE(CheckGraph(history).findings.ok());
}

TEST(GraphCheckerTest, KeysThatAreAlsoWrittenAreIgnored) {
  EXPECT_TRUE(Graph("w0[x=1] c0  r1[x] c1  +2[y=1] c2").ok());
  EXPECT_THAT(Graph("w0[x=1] c0  r1[x] c1  +2[y=1] c2  r3[y] c3").Names(), ElementsAre("G-single-realtime"));
}

TEST(GraphCheckerTest, CountsDependenciesAndPivots) {
  const GraphReport report = CheckGraph(Play("+0[x=1] c0  r1[x=1] c1"));
  EXPECT_EQ(report.dependencies, 1U);
  EXPECT_EQ(report.write_skew_pivots, 0U);
}

}  // namespace
}  // namespace percolator
