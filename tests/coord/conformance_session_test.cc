// SPDX-License-Identifier: Apache-2.0

// Conformance: sessions, and the snapshots that they report.

#include <algorithm>
#include <limits>
#include <set>

#include "tests/coord/conformance.h"

namespace percolator {
namespace {

TEST_P(CoordinatorTest, ASessionIsAliveUntilItIsDestroyed) {
  std::unique_ptr<Session> session = Open(here_);
  const SessionId id = session->id();
  EXPECT_TRUE(session->alive());
  EXPECT_TRUE(IsAlive(here_, id));
  EXPECT_TRUE(IsAlive(there_, id));
  session = nullptr;
  EXPECT_TRUE(Eventually([&] { return !IsAlive(here_, id) && !IsAlive(there_, id); }));
}

TEST_P(CoordinatorTest, TheEndOfASessionDoesNotEndOthers) {
  std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(here_);
  const std::unique_ptr<Session> third = Open(there_);
  first = nullptr;
  EXPECT_TRUE(second->alive());
  EXPECT_TRUE(IsAlive(there_, second->id()));
  EXPECT_TRUE(IsAlive(here_, third->id()));
}

TEST_P(CoordinatorTest, AnUnknownSessionIsNotAlive) {
  const std::unique_ptr<Session> session = Open(here_);
  for (const SessionId never : {SessionId{0}, SessionId{1}, std::numeric_limits<SessionId>::max()}) {
    EXPECT_FALSE(IsAlive(here_, never)) << never;
  }
}

TEST_P(CoordinatorTest, SessionIdsAreUnique) {
  constexpr int kThreads = 4;
  constexpr int kSessions = 50;
  std::vector<std::vector<SessionId>> ids(kThreads);
  InThreads(kThreads, [&](int t) {
    std::vector<std::unique_ptr<Session>> open;
    for (int i = 0; i < kSessions; ++i) {
      std::unique_ptr<Session> session = Open(t % 2 == 0 ? here_ : there_);
      ASSERT_NE(session, nullptr);
      ids[t].push_back(session->id());
      if (i % 2 == 0) open.push_back(std::move(session));  // the others end, and their ids must not be reused
    }
  });
  std::set<SessionId> distinct;
  for (const std::vector<SessionId>& some : ids) distinct.insert(some.begin(), some.end());
  EXPECT_EQ(distinct.size(), kThreads * kSessions);
}

TEST_P(CoordinatorTest, SessionIdsAreNotReusedAfterARestart) {
  std::set<SessionId> before;
  for (int i = 0; i < 20; ++i) before.insert(Open(here_)->id());
  Restart();
  for (const SessionId id : before) EXPECT_FALSE(IsAlive(here_, id)) << id;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(before.contains(Open(here_)->id()));
}

TEST_P(CoordinatorTest, WithoutReportsThereIsNoOldestSnapshot) {
  EXPECT_EQ(Oldest(here_), Timestamp::Infinity());
  const std::unique_ptr<Session> session = Open(here_);
  EXPECT_EQ(Oldest(here_), Timestamp::Infinity());
}

TEST_P(CoordinatorTest, TheAnswerIsTheOldestSnapshotOfAllSessions) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_THAT(first->ReportOldestSnapshot(Timestamp(20)), IsOk());
  EXPECT_EQ(Oldest(there_), Timestamp(20));
  ASSERT_THAT(second->ReportOldestSnapshot(Timestamp(30)), IsOk());
  EXPECT_EQ(Oldest(here_), Timestamp(20));
  ASSERT_THAT(second->ReportOldestSnapshot(Timestamp(10)), IsOk());
  EXPECT_EQ(Oldest(here_), Timestamp(10));
}

TEST_P(CoordinatorTest, AReportReplacesThePreviousOne) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_THAT(first->ReportOldestSnapshot(Timestamp(10)), IsOk());
  ASSERT_THAT(second->ReportOldestSnapshot(Timestamp(30)), IsOk());
  ASSERT_THAT(first->ReportOldestSnapshot(Timestamp(40)), IsOk());
  EXPECT_EQ(Oldest(there_), Timestamp(30));
  ASSERT_THAT(second->ReportOldestSnapshot(Timestamp()), IsOk());
  EXPECT_EQ(Oldest(there_), Timestamp(40));
  ASSERT_THAT(first->ReportOldestSnapshot(Timestamp()), IsOk());
  EXPECT_EQ(Oldest(there_), Timestamp::Infinity());
}

// A dead process must not hold back the safe point (G2) forever.
TEST_P(CoordinatorTest, TheReportOfASessionEndsWithIt) {
  std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_THAT(first->ReportOldestSnapshot(Timestamp(10)), IsOk());
  ASSERT_THAT(second->ReportOldestSnapshot(Timestamp(30)), IsOk());
  first = nullptr;
  EXPECT_TRUE(Eventually([&] { return Oldest(there_) == Timestamp(30); }));
}

// While one session reports a snapshot, other sessions that come, go and report do not make the answer larger.
TEST_P(CoordinatorTest, TheOldestSnapshotIsReturnedWhileOthersComeAndGo) {
  const std::unique_ptr<Session> holder = Open(here_);
  ASSERT_THAT(holder->ReportOldestSnapshot(Timestamp(10)), IsOk());
  InThreads(4, [&](int t) {
    for (uint64_t i = 0; i < 50; ++i) {
      const std::unique_ptr<Session> session = Open(t % 2 == 0 ? here_ : there_);
      ASSERT_NE(session, nullptr);
      ASSERT_THAT(session->ReportOldestSnapshot(Timestamp(11 + i)), IsOk());
      ASSERT_EQ(Oldest(there_), Timestamp(10));
    }
  });
}

}  // namespace
}  // namespace percolator
