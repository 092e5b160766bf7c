// SPDX-License-Identifier: Apache-2.0

// The isolation scripts (tests/histories, H1 to H24), each in an allowed and in a forbidden form: both checkers accept
// the first and report the second. The reference checker judges the allowed forms too, so that the scripts themselves
// are right.

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/history/graph_checker.h"
#include "sim/history/play.h"
#include "sim/history/reference_checker.h"
#include "sim/history/sweep_checker.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

using ::testing::Contains;

// x = 10, y = 20 before every script.
History PlayOn(std::string_view script) { return Play(StrCat("+0[x=10] +0[y=20] c0  ", script)); }

void ExpectAllowed(std::string_view script) {
  SCOPED_TRACE(std::string(script));
  const History history = PlayOn(script);
  EXPECT_TRUE(CheckGraph(history).findings.ok()) << CheckGraph(history).findings;
  EXPECT_TRUE(CheckSweep(history).ok()) << CheckSweep(history);
  EXPECT_TRUE(HasExplanation(history));
  EXPECT_TRUE(TimestampsExplain(history));
}

void ExpectForbidden(std::string_view script, const std::string& by_graph, const std::string& by_sweep) {
  SCOPED_TRACE(std::string(script));
  const History history = PlayOn(script);
  const Findings graph = CheckGraph(history).findings;
  const Findings sweep = CheckSweep(history);
  EXPECT_THAT(graph.Names(), Contains(by_graph)) << graph;
  EXPECT_THAT(sweep.Names(), Contains(by_sweep)) << sweep;
  EXPECT_FALSE(HasExplanation(history));
}

TEST(IsolationScriptTest, H1DirtyWrite) {
  ExpectAllowed("b1 b2 +1[x=11] +2[x=12] +1[y=21] c1 +2[y=22] f2  r3[x=10,11] r3[y=20,21] c3");
  ExpectForbidden("b1 b2 +1[x=11] +2[x=12] +1[y=21] c1 +2[y=22] c2  r3[x=10,11,12] r3[y=20,22,21] c3", "G0",
                  "overlapping-writers");
}

TEST(IsolationScriptTest, H2AbortedRead) {
  ExpectAllowed("b1 b2 +1[x=101] r2[x=10] f1 r2[x=10] c2");
  ExpectForbidden("b1 b2 +1[x=101] r2[x=10,101] f1 c2", "G1a", "wrong-read");
  // The writer dies. The reader waits, and reads either the earlier value or what the writer committed.
  ExpectAllowed("b1 +1[x=101] f1  r2[x=10] c2");
}

TEST(IsolationScriptTest, H3IntermediateRead) {
  ExpectAllowed("b1 b2 +1[x=101] r2[x=10] +1[x=11] c1 r2[x=10] c2  r3[x=10,101,11] c3");
  ExpectForbidden("b1 +1[x=101] +1[x=11] c1  r3[x=10,101] c3  r4[x=10,101,11] c4", "G1b", "wrong-read");
}

TEST(IsolationScriptTest, H4CircularInformationFlow) {
  ExpectAllowed("b1 b2 +1[x=11] +2[y=22] r1[y=20] r2[x=10] c1 c2");
  ExpectForbidden("b1 b2 +1[x=11] +2[y=22] r1[y=20,22] r2[x=10,11] c1 c2", "G1c", "wrong-read");
}

TEST(IsolationScriptTest, H5ObservedTransactionVanishes) {
  ExpectAllowed("b1 b2 +1[x=11] +1[y=19] +2[x=12] +2[y=18] c1 b3 r3[x=10,11] f2 r3[y=20,19] r3[x=10,11] c3");
  ExpectAllowed("+1[x=11] +1[y=19] c1  b2 b3 r3[x=10,11] +2[x=12] +2[y=18] c2 r3[y=20,19] c3");
  ExpectForbidden("+1[x=11] +1[y=19] c1  b2 b3 r3[x=10,11] +2[x=12] +2[y=18] c2 r3[y=20,19,18] c3  r4[x=10,11,12] c4",
                  "G-single", "wrong-read");
}

TEST(IsolationScriptTest, H6PredicateManyPreceders) {
  ExpectAllowed("r1[x=10] r1[y=20] r1[z]  +2[z=30] c2  r1[x=10] r1[y=20] r1[z] c1");
  ExpectForbidden("r1[x=10] r1[y=20] r1[z]  +2[z=30] c2  r1[x=10] r1[y=20] r1[z=30] c1", "internal", "internal");
}

TEST(IsolationScriptTest, H7PredicateManyPrecedersWrite) {
  ExpectAllowed("b1 b2 +1[x=20] +1[y=30] r2[x=10] r2[y=20] +2[y=1] c1 f2");
  ExpectForbidden("b1 b2 +1[x=20] +1[y=30] r2[x=10] r2[y=20] +2[y=1] c1 c2  r3[x=10,20] r3[y=20,30,1] c3", "G-single",
                  "overlapping-writers");
}

TEST(IsolationScriptTest, H8LostUpdate) {
  ExpectAllowed("r1[x=10] r2[x=10] +1[x=11] +2[x=12] c1 f2");
  ExpectAllowed("r1[x=10] r2[x=10] +1[x=11] +2[x=12] c2 f1");
  ExpectForbidden("r1[x=10] r2[x=10] +1[x=11] +2[x=12] c1 c2", "lost-update", "overlapping-writers");
  ExpectForbidden("r1[x=10] r2[x=10] +1[x=11] +2[x=12] c1 c2  r3[x=10,11,12] c3", "G-single", "overlapping-writers");
}

TEST(IsolationScriptTest, H9ReadSkew) {
  ExpectAllowed("r1[x=10]  r2[x=10] r2[y=20] +2[x=12] +2[y=18] c2  r1[y=20] c1");
  ExpectForbidden("r1[x=10]  r2[x=10] r2[y=20] +2[x=12] +2[y=18] c2  r1[y=20,18] c1  r3[x=10,12] c3", "G-single",
                  "wrong-read");
  // 12 was never read; its commit is enough.
  ExpectForbidden("r1[x=10]  r2[x=10] r2[y=20] +2[x=12] +2[y=18] c2  r1[y=20,18] c1", "G-single", "wrong-read");
}

TEST(IsolationScriptTest, H10ReadSkewByPredicate) {
  ExpectAllowed("r1[x=10] r1[y=20]  +2[x=12] c2  r1[x=10] r1[y=20] c1");
  ExpectForbidden("r1[x=10] r1[y=20]  +2[x=12] c2  r1[x=10,12] r1[y=20] c1", "internal", "internal");
}

TEST(IsolationScriptTest, H11ReadSkewByWrite) {
  ExpectAllowed("r1[x=10]  +2[x=12] +2[y=18] c2  +1[y=21] f1");
  ExpectForbidden("r1[x=10]  +2[x=12] +2[y=18] c2  +1[y=21] c1  r3[x=10,12] r3[y=20,18,21] c3", "G-single",
                  "overlapping-writers");
}

TEST(IsolationScriptTest, H12WriteSkewIsAllowed) {
  const std::string_view script = "r1[x=10] r1[y=20] r2[x=10] r2[y=20] +1[x=11] +2[y=21] c1 c2";
  ExpectAllowed(script);
  EXPECT_EQ(CheckGraph(PlayOn(script)).write_skew_pivots, 2U);
}

TEST(IsolationScriptTest, H12WriteSkewIsForbiddenWhereCellsAreVerified) {
  ExpectAllowed("r1[x=10] r1[y=20] v1[y] r2[x=10] r2[y=20] +1[x=11] +2[y=21] c1 f2");
  ExpectForbidden("r1[x=10] r1[y=20] v1[y] r2[x=10] r2[y=20] +1[x=11] +2[y=21] c1 c2", "G-single",
                  "overlapping-writers");
  ExpectForbidden("r1[x=10] r1[y=20] v1[y] r2[x=10] r2[y=20] +1[x=11] +2[y=21] c2 c1", "G-single",
                  "overlapping-writers");
}

TEST(IsolationScriptTest, H13WriteSkewByPredicateIsAllowed) {
  const std::string_view script =
      "r1[x=10] r1[y=20] r1[z] r1[w]  r2[x=10] r2[y=20] r2[z] r2[w]  +1[z=30] +2[w=42] c1 c2  r3[z=30] r3[w=42] c3";
  ExpectAllowed(script);
  EXPECT_EQ(CheckGraph(PlayOn(script)).write_skew_pivots, 2U);
}

TEST(IsolationScriptTest, H14ReadOnlyAnomalyIsAllowed) {
  const std::string_view script = "r1[x=10] r1[y=20]  +2[y=25] c2  r3[x=10] r3[y=20,25] c3  +1[x=0] c1  r4[x=10,0] c4";
  ExpectAllowed(script);
  EXPECT_EQ(CheckGraph(PlayOn(script)).write_skew_pivots, 1U);
}

TEST(IsolationScriptTest, H15LongFork) {
  ExpectAllowed("b1 b2 +1[x=1] +2[y=1] c1  r3[x=10,1] r3[y=20]  c2  r4[x=10,1] r4[y=20,1] c3 c4");
  ExpectForbidden("b1 b2 b3 b4 +1[x=1] +2[y=1] c1 c2  r3[x=10,1] r3[y=20] c3  r4[x=10] r4[y=20,1] c4", "G-nonadjacent",
                  "wrong-read");
}

TEST(IsolationScriptTest, H16OnlyAdjacentAntiDependencies) {
  // A check that composes dependencies carelessly reports this as a violation.
  const std::string_view script =
      "b2 +1[a=2] c1  b3 b4  +2[b=1] r2[a]  r3[c] r3[b] +3[a=5]  +4[c=2] r4[a=2]  c2 c3 c4  r5[a=2,5] r5[b=1] r5[c=2] "
      "c5";
  ExpectAllowed(script);
  EXPECT_GE(CheckGraph(PlayOn(script)).write_skew_pivots, 2U);
}

TEST(IsolationScriptTest, H17RealTime) {
  ExpectAllowed("+1[x=11] c1  r2[x=10,11] c2");
  ExpectForbidden("+1[x=11] c1  r2[x=10] c2", "G-single-realtime", "wrong-read");
  // A reader that overlaps may see either.
  ExpectAllowed("b2 +1[x=11] c1 r2[x=10] c2");
}

TEST(IsolationScriptTest, H18GuardCell) {
  ExpectAllowed("r1[x=10] r1[y=20] r2[x=10] r2[y=20] +1[x=11] +1[g=1] +2[y=21] +2[g=2] c1 f2");
  ExpectForbidden("r1[x=10] r1[y=20] r2[x=10] r2[y=20] +1[x=11] +1[g=1] +2[y=21] +2[g=2] c1 c2  r3[g=1,2] c3",
                  "G-single", "overlapping-writers");
}

TEST(IsolationScriptTest, H19InsertInsert) {
  ExpectAllowed("r1[n] r2[n] +1[n=1] +2[n=2] c1 f2  r3[n=1] c3");
  ExpectForbidden("r1[n] r2[n] +1[n=1] +2[n=2] c1 c2", "lost-update", "overlapping-writers");
}

TEST(IsolationScriptTest, H20DeleteAndSet) {
  const std::string_view begin = "w0[x=10] c0  b1 b2 w1[x] w2[x=11] c1 ";
  EXPECT_TRUE(CheckSweep(Play(StrCat(begin, "f2  r3[x] w3[x=12] c3  r4[x=12] c4"))).ok());
  EXPECT_THAT(CheckSweep(Play(StrCat(begin, "c2"))).Names(), Contains("overlapping-writers"));
  EXPECT_THAT(CheckSweep(Play(StrCat(begin, "f2  r3[x=10] c3"))).Names(), Contains("wrong-read"));
}

TEST(IsolationScriptTest, H21OwnView) {
  EXPECT_TRUE(CheckSweep(Play("w1[x=1] r1[x=1] w1[x] r1[x] w1[x=2] r1[x=2] c1  r2[x=2] c2")).ok());
  EXPECT_THAT(CheckSweep(Play("w1[x=1] w1[x] r1[x=1] c1")).Names(), Contains("internal"));
  EXPECT_THAT(CheckSweep(Play("w1[x=1] r1[x] c1")).Names(), Contains("internal"));
  EXPECT_THAT(CheckSweep(Play("w1[x=1] w1[x=2] c1  r2[x=1] c2")).Names(), Contains("wrong-read"));
  ExpectAllowed("r1[x=10] +1[x=11] r1[x=10,11] +1[x=12] r1[x=10,11,12] c1");
  ExpectForbidden("r1[x=10] +1[x=11] r1[x=10] c1", "internal", "internal");
}

TEST(IsolationScriptTest, H22LockMet) {
  // T3 began before T1. T2 began when T1 was about to commit: it waits, and sees T1.
  ExpectAllowed("b3 b1 +1[x=11] b4 r3[x=10] c1  r2[x=10,11] c2 c3 c4");
  ExpectForbidden("b3 b1 +1[x=11] c1  r2[x=10] c2 c3", "G-single-realtime", "wrong-read");
}

TEST(IsolationScriptTest, H23PushedLate) {
  ExpectAllowed("+1[x=11] +1[y=21]  r2[x=10] r2[y=20] c2  f1  r3[x=10] r3[y=20] c3");
  ExpectForbidden("+1[x=11] +1[y=21]  r2[x=10] r2[y=20] c2  f1  r3[x=10] r3[y=20,21] c3", "G1a", "wrong-read");
}

TEST(IsolationScriptTest, H24ReadOnlyCommit) {
  const History history = PlayOn("r1[x=10] c1");
  EXPECT_EQ(history.transactions[1].commit_ts, Timestamp());
  ExpectAllowed("r1[x=10] c1  b2 c2");
}

}  // namespace
}  // namespace percolator
