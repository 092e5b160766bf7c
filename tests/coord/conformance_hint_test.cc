// SPDX-License-Identifier: Apache-2.0

// Conformance: hints. They may be lost, doubled or late, so a test sends them repeatedly until one arrives.

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "percolator/spi/mutex.h"
#include "tests/coord/conformance.h"

namespace percolator {
namespace {

// Records the hints that it gets.
class Listener {
 public:
  Coordinator::HintListener AsFunction() {
    return [this](const CellName& cell) {
      MutexLock lock(&mutex_);
      heard_.insert(cell);
    };
  }
  bool Heard(const CellName& cell) {
    MutexLock lock(&mutex_);
    return heard_.contains(cell);
  }
  std::set<CellName> heard() {
    MutexLock lock(&mutex_);
    return heard_;
  }

 private:
  Mutex mutex_;
  std::set<CellName> heard_ ABSL_GUARDED_BY(mutex_);
};

// Sends the hint until the condition holds.
bool SendUntil(Coordinator* from, const CellName& cell, const std::function<bool()>& condition) {
  return Eventually([&] {
    from->SendHint(cell);
    return condition();
  });
}

TEST_P(CoordinatorTest, AHintReachesAListenerInAnotherProcess) {
  Listener listener;
  there_->SetHintListener(listener.AsFunction());
  const std::vector<CellName> cells = {
      {"t", "r", "c"}, {"t", "r", ""}, {"u", std::string("\0\xff/", 3), std::string("\0", 1)}};
  for (const CellName& cell : cells) {
    EXPECT_TRUE(SendUntil(here_, cell, [&] { return listener.Heard(cell); })) << cell.table;
  }
  EXPECT_EQ(listener.heard(), std::set<CellName>(cells.begin(), cells.end())) << "only hints that were sent";
  there_->SetHintListener(nullptr);
}

TEST_P(CoordinatorTest, AHintWithoutAListenerIsHarmless) {
  here_->SendHint({"t", "r", "c"});
  Listener listener;
  there_->SetHintListener(listener.AsFunction());
  there_->SetHintListener(nullptr);
  here_->SendHint({"t", "r", "c"});
  there_->SetHintListener(nullptr);
}

TEST_P(CoordinatorTest, AListenerReplacesThePreviousOne) {
  Listener before, after;
  there_->SetHintListener(before.AsFunction());
  ASSERT_TRUE(SendUntil(here_, {"t", "r", "1"}, [&] { return before.Heard({"t", "r", "1"}); }));
  there_->SetHintListener(after.AsFunction());
  const std::set<CellName> heard = before.heard();
  ASSERT_TRUE(SendUntil(here_, {"t", "r", "2"}, [&] { return after.Heard({"t", "r", "2"}); }));
  EXPECT_EQ(before.heard(), heard);
  there_->SetHintListener(nullptr);
}

// A caller that removes a listener may destroy the state that it uses.
TEST_P(CoordinatorTest, ARemovedListenerDoesNotRunAnyMore) {
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) here_->SendHint({"t", "r", "c"});
  });
  for (int round = 0; round < 20; ++round) {
    const auto calls = std::make_shared<std::atomic<int>>(0);
    there_->SetHintListener([calls](const CellName&) {
      ++*calls;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++*calls;
    });
    EXPECT_TRUE(Eventually([&] { return *calls > 0; }));
    there_->SetHintListener(nullptr);
    EXPECT_EQ(*calls % 2, 0) << "a call is in progress";
  }
  stop = true;
  sender.join();
}

TEST_P(CoordinatorTest, AListenerMayUseTheCoordinator) {
  const std::unique_ptr<Session> session = Open(there_);
  Listener listener;
  const Coordinator::HintListener remember = listener.AsFunction();
  there_->SetHintListener([&](const CellName& cell) {
    EXPECT_TRUE(Claim(there_, cell.table, cell.row, *session));
    if (cell.column == "first") there_->SendHint({cell.table, cell.row, "second"});
    remember(cell);
  });
  EXPECT_TRUE(SendUntil(here_, {"t", "r", "first"}, [&] { return listener.Heard({"t", "r", "first"}); }));
  there_->SetHintListener(nullptr);
}

TEST_P(CoordinatorTest, ManyThreadsMaySendAtOnce) {
  Listener listener;
  there_->SetHintListener(listener.AsFunction());
  InThreads(4, [&](int t) {
    Coordinator* from = t % 2 == 0 ? here_ : place_->Connect();
    for (int i = 0; i < 50; ++i) from->SendHint({"t", std::to_string(t), std::to_string(i)});
  });
  EXPECT_TRUE(SendUntil(here_, {"t", "r", "last"}, [&] { return listener.Heard({"t", "r", "last"}); }));
  there_->SetHintListener(nullptr);
}

}  // namespace
}  // namespace percolator
