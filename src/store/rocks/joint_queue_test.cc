// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/joint_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace percolator {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Le;

constexpr std::chrono::milliseconds kWhile(30);

// A queue that records its groups, and whose first group lasts until EndFirst.
class JointQueueTest : public ::testing::Test {
 protected:
  void Apply(const JointQueue::Group& group) {
    const bool first = groups_.empty();
    groups_.push_back(group);
    if (!first) return;
    under_way_ = true;
    MutexLock lock(&mutex_);
    while (!may_end_) end_.Wait(&mutex_);
  }

  // Runs a request in the first group.
  void StartFirst() {
    threads_.emplace_back([this] { queue_.Run(&first_); });
    while (!under_way_) std::this_thread::yield();
  }
  void Start(JointQueue::Request* request) {
    const size_t before = queue_.waiting();
    threads_.emplace_back([this, request] { queue_.Run(request); });
    while (queue_.waiting() == before) std::this_thread::yield();  // so that they arrive in this order
  }
  void EndFirst() {
    {
      MutexLock lock(&mutex_);
      may_end_ = true;
    }
    end_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::vector<size_t> Sizes() const {
    std::vector<size_t> sizes;
    for (const JointQueue::Group& group : groups_) sizes.push_back(group.size());
    return sizes;
  }

  std::vector<JointQueue::Group> groups_;  // written by the leader
  JointQueue queue_{[this](const JointQueue::Group& group) { Apply(group); }};
  JointQueue::Request first_;
  std::atomic<bool> under_way_ = false;
  Mutex mutex_;
  CondVar end_;
  bool may_end_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

TEST_F(JointQueueTest, RequestsThatArriveDuringAGroupFormTheNext) {
  JointQueue::Request a, b, c;
  StartFirst();
  for (JointQueue::Request* request : {&a, &b, &c}) Start(request);
  EndFirst();
  ASSERT_THAT(Sizes(), ElementsAre(1, 3));
  EXPECT_THAT(groups_[1], ElementsAre(&a, &b, &c));
}

TEST_F(JointQueueTest, AGroupHasOneOracle) {
  JointQueue::Request a, b, c;
  b.oracle = reinterpret_cast<Oracle*>(8);
  StartFirst();
  for (JointQueue::Request* request : {&a, &b, &c}) Start(request);
  EndFirst();
  ASSERT_THAT(Sizes(), ElementsAre(1, 2, 1));
  EXPECT_THAT(groups_[1], ElementsAre(&a, &c));
}

TEST_F(JointQueueTest, AGroupIsBoundedInBytesButTakesAtLeastOne) {
  JointQueue::Request a, b, c;
  a.bytes = 10 * JointQueue::kGroupBytes;
  b.bytes = JointQueue::kGroupBytes / 2;
  c.bytes = JointQueue::kGroupBytes / 2;
  StartFirst();
  for (JointQueue::Request* request : {&a, &b, &c}) Start(request);
  EndFirst();
  EXPECT_THAT(Sizes(), ElementsAre(1, 1, 2));
}

TEST_F(JointQueueTest, AGroupIsBoundedInNumber) {
  std::vector<JointQueue::Request> requests(JointQueue::kGroupRequests + 3);
  StartFirst();
  for (JointQueue::Request& request : requests) {
    threads_.emplace_back([this, r = &request] { queue_.Run(r); });
  }
  std::this_thread::sleep_for(kWhile);
  EndFirst();
  EXPECT_THAT(Sizes(), Each(Le(JointQueue::kGroupRequests)));
  size_t all = 0;
  for (size_t size : Sizes()) all += size;
  EXPECT_EQ(all, requests.size() + 1);
}

TEST_F(JointQueueTest, WaitForGroupWaitsForTheOneUnderWay) {
  queue_.WaitForGroup();  // returns at once: no group is under way
  StartFirst();
  std::atomic<bool> waited = false;
  std::thread scan([&] {
    queue_.WaitForGroup();
    waited = true;
  });
  std::this_thread::sleep_for(kWhile);
  EXPECT_FALSE(waited);
  EndFirst();
  scan.join();
}

TEST(JointQueueStressTest, EachRequestIsAppliedOnceAndWaitingEnds) {
  std::atomic<int> applied = 0, applying = 0;
  JointQueue queue([&](const JointQueue::Group& group) {
    EXPECT_EQ(++applying, 1) << "two groups at once";
    applied += static_cast<int>(group.size());
    --applying;
  });
  std::vector<std::thread> threads;
  std::atomic<bool> done = false;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        JointQueue::Request request;
        queue.Run(&request);
      }
    });
  }
  std::thread scan([&] {
    while (!done) queue.WaitForGroup();
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  scan.join();
  EXPECT_EQ(applied, 12'000);
}

}  // namespace
}  // namespace percolator
