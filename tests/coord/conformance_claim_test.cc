// SPDX-License-Identifier: Apache-2.0

// Conformance: leaders of roles, and claims of rows.

#include <array>
#include <atomic>

#include "tests/coord/conformance.h"

namespace percolator {
namespace {

constexpr int kClaimants = 4;

std::string Bytes(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

TEST_P(CoordinatorTest, TheFirstToCampaignLeadsAndTheOthersDoNot) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  EXPECT_TRUE(Campaign(here_, "gc", *first));
  EXPECT_FALSE(Campaign(there_, "gc", *second));
  EXPECT_TRUE(Campaign(here_, "gc", *first)) << "the leader gets true again";
  EXPECT_FALSE(Campaign(there_, "gc", *second));
}

TEST_P(CoordinatorTest, RolesHaveTheirOwnLeaders) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  EXPECT_TRUE(Campaign(here_, "gc", *first));
  EXPECT_TRUE(Campaign(there_, "oracle", *second));
  EXPECT_TRUE(Campaign(there_, "g", *second));
  EXPECT_TRUE(Campaign(there_, Bytes({'g', 'c', 0}), *second));
  EXPECT_FALSE(Campaign(here_, "oracle", *first));
}

TEST_P(CoordinatorTest, AnotherMayLeadWhenTheLeadersSessionHasEnded) {
  std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_TRUE(Campaign(here_, "gc", *first));
  ASSERT_FALSE(Campaign(there_, "gc", *second));
  first = nullptr;
  EXPECT_TRUE(Eventually([&] { return Campaign(there_, "gc", *second); }));
}

TEST_P(CoordinatorTest, TheEndOfALoserDoesNotUnseatTheLeader) {
  const std::unique_ptr<Session> first = Open(here_);
  std::unique_ptr<Session> loser = Open(there_);
  const std::unique_ptr<Session> third = Open(there_);
  ASSERT_TRUE(Campaign(here_, "gc", *first));
  ASSERT_FALSE(Campaign(there_, "gc", *loser));
  loser = nullptr;
  EXPECT_FALSE(Campaign(there_, "gc", *third));
}

TEST_P(CoordinatorTest, OfManyCandidatesExactlyOneLeads) {
  for (int round = 0; round < 20; ++round) {
    const std::string role = "role" + std::to_string(round);
    std::vector<std::unique_ptr<Session>> sessions(kClaimants);
    std::atomic<int> leaders = 0;
    InThreads(kClaimants, [&](int t) {
      Coordinator* coordinator = t % 2 == 0 ? here_ : there_;
      sessions[t] = Open(coordinator);
      ASSERT_NE(sessions[t], nullptr);
      leaders += Campaign(coordinator, role, *sessions[t]) ? 1 : 0;
    });
    EXPECT_EQ(leaders, 1);
  }
}

TEST_P(CoordinatorTest, AClaimedRowCannotBeClaimedByAnotherSession) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  EXPECT_TRUE(Claim(here_, "t", "r", *first));
  EXPECT_FALSE(Claim(there_, "t", "r", *second));
  EXPECT_TRUE(Claim(here_, "t", "r", *first)) << "the owner gets true again";
  EXPECT_FALSE(Claim(there_, "t", "r", *second));
}

TEST_P(CoordinatorTest, AReleasedRowMayBeClaimedByAnother) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_TRUE(Claim(here_, "t", "r", *first));
  ASSERT_TRUE(Claim(here_, "t", "r", *first));  // a second claim needs no second release
  ASSERT_THAT(here_->Release("t", "r", *first), IsOk());
  EXPECT_TRUE(Claim(there_, "t", "r", *second));
  EXPECT_FALSE(Claim(here_, "t", "r", *first));
}

TEST_P(CoordinatorTest, OnlyTheOwnerReleasesAClaim) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  ASSERT_TRUE(Claim(here_, "t", "r", *first));
  EXPECT_THAT(there_->Release("t", "r", *second), IsOk());
  EXPECT_FALSE(Claim(there_, "t", "r", *second));
  EXPECT_THAT(here_->Release("t", "never claimed", *first), IsOk());
}

TEST_P(CoordinatorTest, ClaimsOfASessionEndWithIt) {
  std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  const std::unique_ptr<Session> third = Open(there_);
  ASSERT_TRUE(Claim(here_, "t", "a", *first));
  ASSERT_TRUE(Claim(here_, "t", "b", *first));
  ASSERT_TRUE(Claim(there_, "t", "c", *third));
  first = nullptr;
  EXPECT_TRUE(Eventually([&] { return Claim(there_, "t", "a", *second); }));
  EXPECT_TRUE(Eventually([&] { return Claim(there_, "t", "b", *second); }));
  EXPECT_FALSE(Claim(there_, "t", "c", *second));
}

TEST_P(CoordinatorTest, ClaimsAreOfExactlyThatTableAndRow) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"t", "r"},  {"t", "rr"},       {"tr", "r"},           {"t", "R"},          {"tr", "rr"},
      {"u", "r"},  {"t", Bytes({0})}, {"t", Bytes({0, 0})},  {"t", Bytes({255})}, {"t", Bytes({'/'})},
      {"t/", "r"}, {"t", "/r"},       {"t", Bytes({'r', 0})}};
  for (const auto& [table, row] : rows) EXPECT_TRUE(Claim(here_, table, row, *first)) << table << " " << row;
  for (const auto& [table, row] : rows) EXPECT_FALSE(Claim(there_, table, row, *second)) << table << " " << row;
  for (size_t i = 0; i < rows.size(); i += 2) {
    EXPECT_THAT(here_->Release(rows[i].first, rows[i].second, *first), IsOk());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(Claim(there_, rows[i].first, rows[i].second, *second), i % 2 == 0) << i;
  }
}

TEST_P(CoordinatorTest, ARowAndARoleOfTheSameNameAreDifferentThings) {
  const std::unique_ptr<Session> first = Open(here_);
  const std::unique_ptr<Session> second = Open(there_);
  EXPECT_TRUE(Campaign(here_, "x", *first));
  EXPECT_TRUE(Claim(there_, "x", "x", *second));
  EXPECT_TRUE(Claim(there_, "", "x", *second));
}

// Two threads never have the same row at the same time.
TEST_P(CoordinatorTest, ClaimsExcludeEachOther) {
  constexpr int kRows = 3;
  constexpr int kClaims = 100;
  std::array<std::atomic<int>, kRows> owners = {};
  std::atomic<int> refused = 0;
  InThreads(kClaimants, [&](int t) {
    Coordinator* coordinator = t % 2 == 0 ? here_ : there_;
    const std::unique_ptr<Session> session = Open(coordinator);
    ASSERT_NE(session, nullptr);
    for (int i = 0, claimed = 0; claimed < kClaims; ++i) {
      const int row = (t + i) % kRows;
      if (!Claim(coordinator, "t", std::to_string(row), *session)) {
        ++refused;
        ASSERT_FALSE(HasFailure());
        continue;
      }
      ++claimed;
      ASSERT_EQ(owners[row]++, 0);
      ASSERT_EQ(owners[row]--, 1);
      ASSERT_THAT(coordinator->Release("t", std::to_string(row), *session), IsOk());
    }
  });
  RecordProperty("refused", refused);
}

TEST_P(CoordinatorTest, ASessionThatDoesNotExistLeadsAndClaimsNothing) {
  std::unique_ptr<Session> ended = Open(here_);
  const StrangeSession stranger(ended->id());
  ended = nullptr;
  ASSERT_TRUE(Eventually([&] { return !IsAlive(here_, stranger.id()); }));
  EXPECT_THAT(here_->Campaign("gc", stranger), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(here_->Claim("t", "r", stranger), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(here_->Release("t", "r", stranger), IsOk());
  const std::unique_ptr<Session> session = Open(there_);
  EXPECT_TRUE(Campaign(there_, "gc", *session));
  EXPECT_TRUE(Claim(there_, "t", "r", *session));
}

}  // namespace
}  // namespace percolator
