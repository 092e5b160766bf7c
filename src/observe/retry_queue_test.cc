// SPDX-License-Identifier: Apache-2.0

#include "src/observe/retry_queue.h"

#include <gtest/gtest.h>

#include <memory>

#include "src/observe/queued_cell.h"

namespace percolator {
namespace {

JobRef WaitingJob(Duration retry_at) {
  auto cell = std::make_shared<QueuedCell>();
  cell->jobs.push_back({.state = Job::State::kWaiting, .retry_at = retry_at});
  return {cell, 0};
}

TEST(RetryQueueTest, ReturnsJobsInOrderOfTheirTimesAndNotBefore) {
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

TEST(RetryQueueTest, SkipsAJobThatNoLongerWaitsForThatTime) {
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
