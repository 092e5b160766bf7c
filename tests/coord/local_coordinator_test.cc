// SPDX-License-Identifier: Apache-2.0

// LocalCoordinator beyond the conformance suite.

#include "src/coord/local_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/coord/session_table.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

TEST(SessionTableTest, ExcessClaimsAreGrantedAndForgotten) {
  SessionTable book;
  for (const SessionId session : {1, 2}) book.Report(session, Timestamp());
  const auto row = [](size_t i) { return std::to_string(i); };
  for (size_t i = 0; i <= SessionTable::kMaxClaims; ++i) ASSERT_THAT(book.Claim("t", row(i), 1), IsOkAndHolds(true));
  EXPECT_THAT(book.Claim("t", row(SessionTable::kMaxClaims - 1), 2), IsOkAndHolds(false));
  EXPECT_THAT(book.Claim("t", row(SessionTable::kMaxClaims), 2), IsOkAndHolds(true)) << "the claim of 1 was forgotten";
  book.Release("t", row(0), 1);
  EXPECT_THAT(book.Claim("t", "again", 1), IsOkAndHolds(true));
  EXPECT_THAT(book.Claim("t", "again", 2), IsOkAndHolds(false)) << "the claim fits";
  book.End(1);
  EXPECT_THAT(book.Claim("t", row(1), 2), IsOkAndHolds(true));
}

TEST(SessionTableTest, TheSizeOfAllNamesOfClaimsIsLimited) {
  SessionTable book;
  for (const SessionId session : {1, 2}) book.Report(session, Timestamp());
  const std::string row(SessionTable::kMaxClaimBytes - 1, 'r');
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(book.Claim("t", row, 1), IsOkAndHolds(true));
    EXPECT_THAT(book.Claim("t", row, 2), IsOkAndHolds(false));
    EXPECT_THAT(book.Claim("t", "more", 1), IsOkAndHolds(true));
    EXPECT_THAT(book.Claim("t", "more", 2), IsOkAndHolds(true)) << "it does not fit";
    book.End(1);  // frees space
    book.Report(1, Timestamp());
  }
}

TEST(SessionTableTest, TheRolesOfASessionAreLimited) {
  SessionTable book;
  for (const SessionId session : {1, 2}) book.Report(session, Timestamp());
  for (size_t i = 0; i < SessionTable::kMaxRoles; ++i) {
    ASSERT_THAT(book.Campaign(std::to_string(i), 1), IsOkAndHolds(true));
  }
  EXPECT_THAT(book.Campaign("one more", 1), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(book.Campaign("0", 1), IsOkAndHolds(true)) << "it already has this role";
  EXPECT_THAT(book.Campaign("0", 2), IsOkAndHolds(false));
  EXPECT_THAT(book.Campaign("one more", 2), IsOkAndHolds(true));
}

TEST(LocalCoordinatorTest, TheIdOfASessionIsATimestamp) {
  TestOracle oracle(7);
  LocalCoordinator coordinator(&oracle);
  const std::unique_ptr<Session> first = coordinator.OpenSession().value();
  const std::unique_ptr<Session> second = coordinator.OpenSession().value();
  EXPECT_EQ(first->id(), 7);
  EXPECT_EQ(second->id(), 8);
  EXPECT_EQ(oracle.next(), Timestamp(9));
}

TEST(LocalCoordinatorTest, WithoutATimestampNoSessionOpens) {
  TestOracle oracle(7);
  oracle.FailNext(1);
  LocalCoordinator coordinator(&oracle);
  EXPECT_THAT(coordinator.OpenSession(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(coordinator.OpenSession(), IsOk());
}

TEST(LocalCoordinatorTest, AHintArrivesBeforeSendHintReturns) {
  TestOracle oracle(7);
  LocalCoordinator coordinator(&oracle);
  std::vector<CellName> heard;
  coordinator.SetHintListener([&](const CellName& cell) { heard.push_back(cell); });
  coordinator.SendHint({"t", "r", "c"});
  coordinator.SendHint({"t", "r", "d"});
  EXPECT_THAT(heard, ElementsAre(CellName{"t", "r", "c"}, CellName{"t", "r", "d"}));
}

}  // namespace
}  // namespace percolator
