#include "tests/txn/baton_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace percolator {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(BatonRuntimeTest, TimePassesOnlyInSleepAndCostsNone) {
  const auto begun = std::chrono::steady_clock::now();
  BatonRuntime runtime;
  EXPECT_EQ(runtime.Elapsed(), Duration(0));
  runtime.Sleep(hours(1000));
  EXPECT_EQ(runtime.Elapsed(), hours(1000));
  EXPECT_EQ(runtime.sleeps(), 1);
  EXPECT_EQ(runtime.slept(), hours(1000));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(600));
}

TEST(BatonRuntimeTest, ATaskRunsWhenItsStarterWaits) {
  BatonRuntime runtime;
  std::vector<std::string> events;
  runtime.Start([&] { events.emplace_back("task"); });
  events.emplace_back("starter");
  runtime.LetOthersRun();
  events.emplace_back("starter again");
  EXPECT_THAT(events, ElementsAre("starter", "task", "starter again"));
}

TEST(BatonRuntimeTest, SleepersWakeInTheOrderOfTheirTimes) {
  BatonRuntime runtime;
  std::vector<int> events;
  for (const int n : {3, 1, 2}) {
    runtime.Start([&runtime, &events, n] {
      runtime.Sleep(seconds(n));
      events.push_back(n);
    });
  }
  runtime.Sleep(seconds(10));
  EXPECT_THAT(events, ElementsAre(1, 2, 3));
  EXPECT_EQ(runtime.Elapsed(), seconds(10));
}

TEST(BatonRuntimeTest, AWaiterIsWokenOrWaitsForSoLongAtMost) {
  BatonRuntime runtime;
  const std::unique_ptr<WaitQueue> queue = runtime.NewWaitQueue();
  Mutex mutex;
  std::vector<Duration> woken;
  const auto wait = [&] {
    mutex.Lock();
    queue->WaitFor(&mutex, seconds(5));
    woken.push_back(runtime.Elapsed());
    mutex.Unlock();
  };
  runtime.Start(wait);
  runtime.Start(wait);
  runtime.Sleep(seconds(1));
  queue->WakeOne();
  runtime.Sleep(seconds(10));
  EXPECT_THAT(woken, ElementsAre(seconds(1), seconds(5)));
}

TEST(BatonRuntimeTest, TasksTakeTurns) {
  BatonRuntime runtime;
  const std::unique_ptr<WaitQueue> queue = runtime.NewWaitQueue();
  Mutex mutex;
  int turn = 0;
  std::vector<int> events;
  for (int me = 0; me < 2; ++me) {
    runtime.Start([&, me] {
      MutexLock lock(&mutex);
      for (int i = 0; i < 3; ++i) {
        while (turn != me) queue->Wait(&mutex);
        events.push_back(me);
        turn = 1 - me;
        queue->WakeAll();
      }
    });
  }
  runtime.LetOthersRun();
  EXPECT_THAT(events, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(BatonRuntimeTest, ChanceIsTheSameInEveryRun) {
  BatonRuntime one;
  const uint64_t first = one.Random();
  EXPECT_NE(one.Random(), first);
  BatonRuntime other;
  EXPECT_EQ(other.Random(), first);
}

TEST(BatonRuntimeDeathTest, WhoIsStuckIsTold) {
  EXPECT_DEATH(
      {
        BatonRuntime runtime;
        const std::unique_ptr<WaitQueue> queue = runtime.NewWaitQueue();
        Mutex mutex;
        MutexLock lock(&mutex);
        queue->Wait(&mutex);
      },
      "stuck");
}

}  // namespace
}  // namespace percolator
