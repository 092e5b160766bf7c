// SPDX-License-Identifier: Apache-2.0

#include "percolator/spi/runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace percolator {
namespace {

// The real runtime, with events made from its WaitQueue, as in runtimes without an event of their own.
class PlainRuntime final : public Runtime {
 public:
  Duration Elapsed() override { return Real()->Elapsed(); }
  void Sleep(Duration duration) override { Real()->Sleep(duration); }
  uint64_t Random() override { return Real()->Random(); }
  void Start(std::function<void()> task) override { Real()->Start(std::move(task)); }
  std::unique_ptr<WaitQueue> NewWaitQueue() override { return Real()->NewWaitQueue(); }
};

class EventTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Event> NewEvent() { return GetParam() ? Runtime::Real()->NewEvent() : plain_.NewEvent(); }

 private:
  PlainRuntime plain_;
};

TEST_P(EventTest, WaitReturnsAtOnceAfterSet) {
  const std::unique_ptr<Event> event = NewEvent();
  event->Set();
  event->Wait();
  event->Wait();
}

TEST_P(EventTest, AllWaitersSeeWritesMadeBeforeSet) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    const std::unique_ptr<Event> event = NewEvent();
    std::string done;
    std::atomic<int> seen{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        event->Wait();
        seen += done == "done" ? 1 : 0;
      });
    }
    // Some threads wait by now, others come later. The mixture differs between rounds.
    if (round % 2 == 0) Runtime::Real()->Yield();
    done = "done";
    event->Set();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(seen, kThreads);
  }
}

TEST_P(EventTest, WaitDoesNotReturnBeforeSet) {
  const std::unique_ptr<Event> event = NewEvent();
  std::atomic<bool> set{false};
  std::atomic<bool> early{false};
  std::thread waiting([&] {
    event->Wait();
    early = !set;
  });
  Runtime::Real()->Sleep(std::chrono::milliseconds(20));
  set = true;
  event->Set();
  waiting.join();
  EXPECT_FALSE(early);
}

INSTANTIATE_TEST_SUITE_P(Runtimes, EventTest, ::testing::Values(true, false),
                         [](const auto& its) { return its.param ? "Futex" : "WaitQueue"; });

}  // namespace
}  // namespace percolator
