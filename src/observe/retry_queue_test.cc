#include "src/observe/retry_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "src/observe/queued_cell.h"
#include "src/txn/environment.h"

namespace percolator {
namespace {

JobRef WaitingJob(Duration retry_at) {
  auto cell = std::make_shared<QueuedCell>();
  cell->jobs.push_back({.state = Job::State::kWaiting, .retry_at = retry_at});
  return {cell, 0};
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

TEST(RetryQueueTest, JobsComeInTheOrderOfTheirTimesAndNotBefore) {
  RetryQueue queue;
  EXPECT_FALSE(queue.NextDue().has_value());
  const JobRef later = WaitingJob(Duration(20));
  const JobRef earlier = WaitingJob(Duration(10));
  queue.Add(later);
  queue.Add(earlier);
  EXPECT_EQ(queue.NextDue(), Duration(10));
  EXPECT_FALSE(queue.TakeDue(Duration(9)).has_value());
  EXPECT_EQ(queue.TakeDue(Duration(30))->cell, earlier.cell);
  EXPECT_EQ(queue.TakeDue(Duration(30))->cell, later.cell);
  EXPECT_FALSE(queue.TakeDue(Duration(30)).has_value());
}

TEST(RetryQueueTest, AJobThatNoLongerWaitsForThatTimeIsPassedOver) {
  RetryQueue queue;
  const JobRef dropped = WaitingJob(Duration(10));
  const JobRef again = WaitingJob(Duration(10));
  queue.Add(dropped);
  queue.Add(again);
  dropped.job().state = Job::State::kDone;
  again.job().retry_at = Duration(20);
  queue.Add(again);
  EXPECT_FALSE(queue.TakeDue(Duration(10)).has_value());
  EXPECT_EQ(queue.TakeDue(Duration(20))->cell, again.cell);
}

}  // namespace
}  // namespace percolator
