// SPDX-License-Identifier: Apache-2.0

#include "tests/harness/virtual_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace percolator {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(VirtualRuntimeTest, SleepAdvancesVirtualTimeAndTakesNoRealTime) {
  const auto begun = std::chrono::steady_clock::now();
  VirtualRuntime runtime;
  EXPECT_EQ(runtime.Elapsed(), Duration(0));
  runtime.Sleep(hours(1000));
  EXPECT_EQ(runtime.Elapsed(), hours(1000));
  EXPECT_EQ(runtime.sleeps(), 1);
  EXPECT_EQ(runtime.slept(), hours(1000));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(600));
}

TEST(VirtualRuntimeTest, ATaskRunsWhenItsStarterWaits) {
  VirtualRuntime runtime;
  std::vector<std::string> events;
  runtime.Start([&] { events.emplace_back("task"); });
  events.emplace_back("starter");
  runtime.LetOthersRun();
  events.emplace_back("starter again");
  EXPECT_THAT(events, ElementsAre("starter", "task", "starter again"));
}

TEST(VirtualRuntimeTest, SleepersWakeInTheOrderOfTheirTimes) {
  VirtualRuntime runtime;
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

TEST(VirtualRuntimeTest, AWaiterIsWokenOrTimesOut) {
  VirtualRuntime runtime;
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

TEST(VirtualRuntimeTest, TimePassesOnlyWhenAllWait) {
  VirtualRuntime runtime;
  std::vector<std::string> events;
  const auto note = [&](const std::string& name) {
    events.push_back(name + "@" + std::to_string(runtime.Elapsed().count()));
  };
  runtime.Start([&] {
    note("a");
    runtime.Sleep(Duration(30));
    note("a");
  });
  runtime.Start([&] {
    note("b");
    runtime.Sleep(Duration(10));
    note("b");
  });
  runtime.LetOthersRun();
  note("main");
  runtime.Sleep(Duration(20));
  note("main");
  runtime.Sleep(Duration(20));
  note("main");
  EXPECT_THAT(events, ElementsAre("a@0", "b@0", "main@0", "b@10", "main@20", "a@30", "main@40"));
}

TEST(VirtualRuntimeTest, WaitsEndWhenWokenOrAtTheirTimeout) {
  VirtualRuntime runtime;
  Mutex mutex;
  const std::unique_ptr<WaitQueue> queue = runtime.NewWaitQueue();
  std::vector<int> woken;
  for (const int i : {1, 2, 3}) {
    runtime.Start([&, i] {
      MutexLock lock(&mutex);
      if (i == 2) {
        queue->WaitFor(&mutex, Duration(5));
      } else {
        queue->Wait(&mutex);
      }
      woken.push_back(i);
    });
  }
  runtime.LetOthersRun();
  runtime.Sleep(Duration(7));
  EXPECT_THAT(woken, ElementsAre(2));
  queue->WakeOne();
  runtime.LetOthersRun();
  EXPECT_THAT(woken, ElementsAre(2, 1));
  queue->WakeAll();
  runtime.LetOthersRun();
  EXPECT_THAT(woken, ElementsAre(2, 1, 3));
}

TEST(VirtualRuntimeTest, TasksTakeTurns) {
  VirtualRuntime runtime;
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

TEST(VirtualRuntimeTest, RandomNumbersAreTheSameInEveryRun) {
  VirtualRuntime one;
  const uint64_t first = one.Random();
  EXPECT_NE(one.Random(), first);
  VirtualRuntime other;
  EXPECT_EQ(other.Random(), first);
}

TEST(VirtualRuntimeDeathTest, ADeadlockEndsTheProgram) {
  EXPECT_DEATH(
      {
        VirtualRuntime runtime;
        const std::unique_ptr<WaitQueue> queue = runtime.NewWaitQueue();
        Mutex mutex;
        MutexLock lock(&mutex);
        queue->Wait(&mutex);
      },
      "stuck");
}

TEST(VirtualRuntimeDeathTest, AThreadThatIsNotATaskEndsTheProgram) {
  EXPECT_DEATH(
      {
        VirtualRuntime runtime;
        std::thread([&runtime] { runtime.Sleep(seconds(1)); }).join();
      },
      "does not have the turn");
}

}  // namespace
}  // namespace percolator
