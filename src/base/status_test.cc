// SPDX-License-Identifier: Apache-2.0

#include "percolator/status.h"

#include <gtest/gtest.h>

#include <string>

#include "percolator/conflict.h"
#include "src/base/errors.h"

namespace percolator {
namespace {

TEST(StatusTest, AConflictErrorCarriesTheConflict) {
  const Conflict conflict{Conflict::Kind::kLocked, {"t", std::string("r\0w", 3), ""}, Timestamp(7), Timestamp(5), {}};
  const absl::Status status = ConflictError(conflict);
  EXPECT_TRUE(IsConflict(status));
  EXPECT_FALSE(absl::IsUnknown(status));
  EXPECT_EQ(GetConflict(status), conflict);
}

TEST(StatusTest, TheTextOfAConflictNamesCellAndTimestamps) {
  const absl::Status status = ConflictError(
      {Conflict::Kind::kNewerWrite, {"accounts", "Bob", "bal"}, Timestamp(7), Timestamp(6), Timestamp(8)});
  EXPECT_EQ(std::string(status.message()),
            "the transaction started at 7 lost accounts/Bob/bal to a write committed at 8");
}

TEST(StatusTest, OtherStatusesHaveNoConflict) {
  EXPECT_EQ(GetConflict(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(GetConflict(absl::AbortedError("no evidence")), std::nullopt);
}

// Other components use the same code when they are closed.
TEST(StatusTest, OnlyAClosedErrorIsClosed) {
  const absl::Status closed = ClosedError("the cluster is closed");
  EXPECT_TRUE(IsClosed(closed));
  EXPECT_TRUE(absl::IsFailedPrecondition(closed));
  EXPECT_EQ(std::string(closed.message()), "the cluster is closed");
  EXPECT_FALSE(IsClosed(absl::FailedPreconditionError("the cluster is closed")));
  EXPECT_FALSE(IsClosed(absl::OkStatus()));
}

TEST(StatusTest, PredicatesFollowTheCodes) {
  EXPECT_TRUE(IsSnapshotTooOld(absl::OutOfRangeError("")));
  EXPECT_TRUE(IsTransient(absl::UnavailableError("")));
  EXPECT_TRUE(IsTransient(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsTransient(absl::DataLossError("")));
}

}  // namespace
}  // namespace percolator
