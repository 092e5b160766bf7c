// SPDX-License-Identifier: Apache-2.0

#include "src/coord/row_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "percolator/spi/forwarding.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamedSession final : public Session {
 public:
  SessionId id() const override { return 7; }
  bool alive() const override { return true; }
  absl::Status ReportOldestSnapshot(Timestamp /*oldest*/) override { return absl::OkStatus(); }
};

// Records its calls, and returns `answer` from Claim.
class ScriptedCoordinator final : public ForwardingCoordinator {
 public:
  ScriptedCoordinator() : ForwardingCoordinator(nullptr) {}  // no other function is called

  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override {
    calls.push_back(StrCat("claim ", table, " ", row, " ", session.id()));
    return answer;
  }
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override {
    calls.push_back(StrCat("release ", table, " ", row, " ", session.id()));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> answer = true;
  std::vector<std::string> calls;
};

class RowClaimsTest : public ::testing::Test {
 protected:
  ScriptedCoordinator coordinator_;
  NamedSession session_;
  RowClaims claims_{&coordinator_, &session_};
  const int one_ = 0;
  const int other_ = 0;
};

TEST_F(RowClaimsTest, TheFirstClaimAndTheLastReleaseReachTheCoordinator) {
  EXPECT_TRUE(claims_.Claim(&one_, "t", "r"));
  EXPECT_TRUE(claims_.Claim(&one_, "t", "r"));
  EXPECT_THAT(coordinator_.calls, ElementsAre("claim t r 7"));
  claims_.Release(&one_, "t", "r");
  EXPECT_EQ(claims_.size(), 1U);
  EXPECT_THAT(coordinator_.calls, ElementsAre("claim t r 7"));
  claims_.Release(&one_, "t", "r");
  EXPECT_EQ(claims_.size(), 0U);
  EXPECT_THAT(coordinator_.calls, ElementsAre("claim t r 7", "release t r 7"));
}

TEST_F(RowClaimsTest, TwoOwnersInAProcessExcludeEachOther) {
  EXPECT_TRUE(claims_.Claim(&one_, "t", "r"));
  EXPECT_FALSE(claims_.Claim(&other_, "t", "r"));
  EXPECT_TRUE(claims_.Claim(&other_, "t", "r2"));
  EXPECT_TRUE(claims_.Claim(&other_, "t2", "r"));
  claims_.Release(&other_, "t", "r");  // not its own
  EXPECT_FALSE(claims_.Claim(&other_, "t", "r"));
  claims_.Release(&one_, "t", "r");
  EXPECT_TRUE(claims_.Claim(&other_, "t", "r"));
}

TEST_F(RowClaimsTest, ARefusedClaimIsNotHeld) {
  coordinator_.answer = false;
  EXPECT_FALSE(claims_.Claim(&one_, "t", "r"));
  EXPECT_EQ(claims_.size(), 0U);
  coordinator_.answer = true;
  EXPECT_TRUE(claims_.Claim(&other_, "t", "r"));
}

TEST_F(RowClaimsTest, ClaimsAreGrantedWhileTheCoordinatorCannotBeReached) {
  coordinator_.answer = absl::UnavailableError("away");
  EXPECT_TRUE(claims_.Claim(&one_, "t", "r"));
  EXPECT_FALSE(claims_.Claim(&other_, "t", "r"));
  coordinator_.calls.clear();
  claims_.Release(&one_, "t", "r");  // it may have been granted
  EXPECT_THAT(coordinator_.calls, ElementsAre("release t r 7"));
}

TEST_F(RowClaimsTest, ReleasingAnUnclaimedRowDoesNothing) {
  claims_.Release(&one_, "t", "r");
  EXPECT_THAT(coordinator_.calls, IsEmpty());
}

}  // namespace
}  // namespace percolator
