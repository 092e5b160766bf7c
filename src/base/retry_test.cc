// SPDX-License-Identifier: Apache-2.0

#include "src/base/retry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"
#include "tests/harness/virtual_runtime.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DeadlineTest, PassesWhenItsTimeIsOver) {
  VirtualRuntime runtime;
  const Deadline deadline(&runtime, seconds(2));
  runtime.Sleep(milliseconds(1500));
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.left(), milliseconds(500));
  EXPECT_EQ(deadline.waited(), "1500 ms");
  runtime.Sleep(seconds(1));
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.left(), Duration(0));
}

TEST(DeadlineTest, TheLongestTimeDoesNotOverflow) {
  VirtualRuntime runtime;
  EXPECT_FALSE(Deadline(&runtime, Duration::max()).passed());
}

TEST(DeadlineTest, TheEarlierOfTwoCounts) {
  VirtualRuntime runtime;
  const Deadline deadline(&runtime, seconds(10));
  EXPECT_EQ(deadline.AtMost(seconds(2)).left(), seconds(2));
  EXPECT_EQ(deadline.AtMost(seconds(20)).left(), seconds(10));
}

TEST(DeadlineTest, PassesWhenItsFlagIsSet) {
  VirtualRuntime runtime;
  std::atomic<bool> over{false};
  const Deadline deadline = Deadline(&runtime, seconds(10)).Or(&over);
  EXPECT_FALSE(deadline.passed());
  over = true;
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.left(), Duration(0));
  EXPECT_TRUE(deadline.AtMost(seconds(1)).passed());
}

TEST(RetryDelayTest, DoublesFromTheFirstToTheMax) {
  const auto longest = [](int failures) {
    Duration delay{0};
    for (uint64_t random = 0; random < 1000; ++random) {
      delay = std::max(delay, RetryDelay(Duration(10), Duration(80), failures, random));
    }
    return delay;
  };
  EXPECT_EQ(longest(1), Duration(10));
  EXPECT_EQ(longest(2), Duration(20));
  EXPECT_EQ(longest(4), Duration(80));
  EXPECT_EQ(longest(1'000'000), Duration(80));
}

TEST(RetryDelayTest, IsAtLeastHalf) {
  EXPECT_EQ(RetryDelay(Duration(10), Duration(80), 1, 0), Duration(5));
  EXPECT_EQ(RetryDelay(Duration(10), Duration(80), 4, 0), Duration(40));
}

TEST(RetryDelayTest, IsNeverZeroAndNeverOverflows) {
  EXPECT_EQ(RetryDelay(Duration(0), Duration(0), 1, 0), Duration(1));
  EXPECT_LE(RetryDelay(Duration::max(), Duration::max(), 100, UINT64_MAX), kForever);
}

TEST(BackoffTest, WaitsGrowToTheMaxAndStartOverAfterAReset) {
  VirtualRuntime runtime(/*seed=*/0);  // every delay is half of its bound
  Backoff backoff(&runtime, Duration(100), Duration(300));
  EXPECT_EQ(backoff.Next(), Duration(50));
  EXPECT_EQ(backoff.Next(), Duration(100));
  EXPECT_EQ(backoff.Next(), Duration(150));
  EXPECT_EQ(backoff.Next(), Duration(150));
  backoff.Reset();
  backoff.Wait();
  EXPECT_EQ(runtime.Elapsed(), Duration(50));
}

// --- RetryUntil

class RetryUntilTest : public ::testing::Test {
 protected:
  // Fails `failures` times, then returns 7.
  absl::StatusOr<int> Try(const absl::Status& error, int failures) {
    return ++tries_ <= failures ? absl::StatusOr<int>(error) : 7;
  }

  VirtualRuntime runtime_;
  const Deadline deadline_{&runtime_, seconds(5)};
  int tries_ = 0;
};

TEST_F(RetryUntilTest, ASuccessIsNotRepeated) {
  EXPECT_EQ(RetryUntil(deadline_, [&] { return Try({}, 0); }).value(), 7);
  EXPECT_EQ(tries_, 1);
  EXPECT_EQ(runtime_.sleeps(), 0);
}

TEST_F(RetryUntilTest, ATransientErrorIsRetriedAfterAWait) {
  EXPECT_EQ(RetryUntil(deadline_, [&] { return Try(absl::UnavailableError("away"), 3); }).value(), 7);
  EXPECT_EQ(tries_, 4);
  EXPECT_EQ(runtime_.sleeps(), 3);
}

TEST_F(RetryUntilTest, ALastingErrorIsReturnedAtOnce) {
  const absl::Status status = RetryUntil(deadline_, [&] { return Try(absl::DataLossError("bad"), 3).status(); });
  EXPECT_EQ(status, absl::DataLossError("bad"));
  EXPECT_EQ(tries_, 1);
}

TEST_F(RetryUntilTest, GivesUpAtTheDeadlineButTriesOnce) {
  const auto fail = [&] { return Try(absl::UnavailableError("away"), 1'000'000); };
  EXPECT_EQ(RetryUntil(deadline_, fail).status(), absl::UnavailableError("away"));
  EXPECT_GE(runtime_.Elapsed(), seconds(5));
  EXPECT_LT(runtime_.Elapsed(), seconds(6));
  tries_ = 0;
  EXPECT_FALSE(RetryUntil(deadline_, fail).ok());
  EXPECT_EQ(tries_, 1);
}

TEST_F(RetryUntilTest, AfterAFirstAttemptItWaitsBeforeTheNext) {
  const auto succeed = [&] { return Try({}, 0); };
  EXPECT_EQ(RetryAfter(absl::StatusOr<int>(3), deadline_, succeed).value(), 3);
  EXPECT_EQ(tries_, 0);
  EXPECT_EQ(RetryAfter(absl::StatusOr<int>(absl::UnavailableError("away")), deadline_, succeed).value(), 7);
  EXPECT_EQ(tries_, 1);
  EXPECT_EQ(runtime_.sleeps(), 1);
}

}  // namespace
}  // namespace percolator
