// SPDX-License-Identifier: Apache-2.0

#include "sim/scheduler.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/chance.h"
#include "sim/trace.h"

namespace percolator::sim {
namespace {

using ::testing::HasSubstr;
using Ending = Scheduler::Ending;

class SchedulerTest : public ::testing::Test {
 protected:
  void Log(char c) { log_.push_back(c); }

  Chance chance_{7};
  Trace trace_;
  Scheduler scheduler_{&chance_, &trace_};
  std::string log_;
};

TEST_F(SchedulerTest, EventsRunByTheirTime) {
  scheduler_.At(Duration(30), kWorldActor, "c", [this] { Log('c'); });
  scheduler_.At(Duration(10), kWorldActor, "a", [this] {
    Log('a');
    scheduler_.At(Duration(20), kWorldActor, "b", [this] { Log('b'); });
    scheduler_.At(Duration(5), kWorldActor, "past", [this] { Log('p'); });  // past, so it runs now
  });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "apbc");
  EXPECT_EQ(scheduler_.now(), Duration(30));
}

TEST_F(SchedulerTest, CancelledEventsDoNotRunAndTakeNoTime) {
  const Scheduler::EventId event = scheduler_.At(Duration(1'000), kWorldActor, "x", [this] { Log('x'); });
  scheduler_.At(Duration(10), kWorldActor, "a", [this, event] {
    Log('a');
    scheduler_.Cancel(event);
    scheduler_.Cancel(event);  // twice is harmless
  });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "a");
  EXPECT_EQ(scheduler_.now(), Duration(10));
}

TEST(Scheduler, TheOrderAtOneTimeComesFromTheSeed) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::string logs[2];
    for (std::string& log : logs) {
      Chance chance(seed);
      Trace trace;
      Scheduler scheduler(&chance, &trace);
      for (const char c : {'a', 'b', 'c'}) {
        scheduler.At(Duration(1), kWorldActor, "letter", [&log, c] { log.push_back(c); });
      }
      scheduler.Run({});
    }
    EXPECT_EQ(logs[0], logs[1]);
    orders.insert(logs[0]);
  }
  EXPECT_EQ(orders.size(), 6U);  // all possible orders
}

TEST_F(SchedulerTest, AFiberWaitsUntilItIsWoken) {
  Scheduler::Parking waiting;
  scheduler_.Start(nullptr, "waiter", [&] {
    Log('a');
    waiting = scheduler_.Here();
    scheduler_.Park("here");
    Log('c');
  });
  scheduler_.Start(nullptr, "waker", [&] {
    scheduler_.ParkUntil(Duration(5), "there");
    Log('b');
    EXPECT_TRUE(scheduler_.Wake(waiting));
    EXPECT_FALSE(scheduler_.Wake(waiting));  // it has ended
  });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "abc");
  EXPECT_EQ(scheduler_.now(), Duration(5));
}

TEST_F(SchedulerTest, AStaleWakeDoesNotEndTheNextWait) {
  Scheduler::Parking first;
  scheduler_.Start(nullptr, "waiter", [&] {
    first = scheduler_.Here();
    scheduler_.ParkUntil(Duration(5), "first");
    Log('1');
    scheduler_.ParkUntil(Duration(50), "second");
    EXPECT_EQ(scheduler_.now(), Duration(50));
    Log('2');
  });
  scheduler_.At(Duration(10), kWorldActor, "stale", [&] { EXPECT_FALSE(scheduler_.Wake(first)); });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "12");
}

TEST_F(SchedulerTest, AStuckRunSaysWhereEachFiberWaits) {
  Scheduler::Parking waiting;
  scheduler_.Start(nullptr, "patient", [&] {
    waiting = scheduler_.Here();
    scheduler_.Park("the end of the world");
    Log('!');
  });
  const Scheduler::Report report = scheduler_.Run({});
  EXPECT_EQ(report.ending, Ending::kStuck);
  EXPECT_THAT(report.waiting, HasSubstr("patient: the end of the world"));
  EXPECT_TRUE(scheduler_.Wake(waiting));
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "!");
}

TEST_F(SchedulerTest, ARunStopsAtItsBoundsAndCanContinue) {
  scheduler_.Start(nullptr, "loop", [&] {
    for (int i = 0; i < 100; ++i) scheduler_.ParkUntil(scheduler_.now() + Duration(10), "loop");
    Log('.');
  });
  EXPECT_EQ(scheduler_.Run({.until = Duration(55)}).ending, Ending::kTime);
  EXPECT_EQ(scheduler_.now(), Duration(55));
  const Scheduler::Report report = scheduler_.Run({.events = 7});
  EXPECT_EQ(report.ending, Ending::kEvents);
  EXPECT_EQ(report.events, 7U);
  EXPECT_THAT(report.waiting, HasSubstr("loop"));
  scheduler_.At(scheduler_.now(), kWorldActor, "stop", [&] { scheduler_.Stop(); });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kStopped);
  EXPECT_EQ(log_, "");
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, ".");
  EXPECT_EQ(scheduler_.now(), Duration(1'000));
}

TEST_F(SchedulerTest, AGroupThatIsHeldGetsNoTurns) {
  Scheduler::Group group(9);
  scheduler_.Start(&group, "member", [&] {
    scheduler_.ParkUntil(Duration(10), "sleep");
    EXPECT_EQ(scheduler_.now(), Duration(100));
    Log('m');
  });
  scheduler_.Start(nullptr, "stranger", [&] {
    scheduler_.ParkUntil(Duration(10), "sleep");
    EXPECT_EQ(scheduler_.now(), Duration(10));
    Log('s');
  });
  scheduler_.At(Duration(5), kWorldActor, "hold", [&] { scheduler_.Hold(&group); });
  scheduler_.At(Duration(100), kWorldActor, "release", [&] { scheduler_.Release(&group); });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
  EXPECT_EQ(log_, "sm");
}

TEST_F(SchedulerTest, InterruptEndsTheWaitsThatAllowIt) {
  Scheduler::Group group(9);
  scheduler_.Start(&group, "yes", [&] {
    scheduler_.ParkUntil(Duration(50), "yes", Scheduler::Interruptible::kYes);
    EXPECT_EQ(scheduler_.now(), Duration(5));
  });
  scheduler_.Start(&group, "no", [&] {
    scheduler_.ParkUntil(Duration(50), "no");
    EXPECT_EQ(scheduler_.now(), Duration(50));
  });
  scheduler_.At(Duration(5), kWorldActor, "interrupt", [&] { scheduler_.Interrupt(&group); });
  EXPECT_EQ(scheduler_.Run({}).ending, Ending::kDone);
}

TEST(SchedulerDeathTest, AWaitOutsideOfFibersIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Chance chance(1);
  Trace trace;
  Scheduler scheduler(&chance, &trace);
  EXPECT_DEATH(scheduler.Park("nowhere"), "outside of its fibers");
}

TEST(Chance, DrawsOfOneActorDoNotShiftThoseOfAnother) {
  Chance a(3);
  Chance b(3);
  for (int i = 0; i < 10; ++i) a.Draw(5, Site::kThere);
  EXPECT_EQ(a.Draw(6, Site::kThere), b.Draw(6, Site::kThere));
  EXPECT_EQ(a.Draw(5, Site::kBack), b.Draw(5, Site::kBack));
  EXPECT_NE(a.Draw(5, Site::kThere), b.Draw(5, Site::kThere));
}

TEST(Chance, FaultsHappenAtTheirRate) {
  Chance chance(11);
  int happened = 0;
  for (int i = 0; i < 10'000; ++i) happened += chance.Happens(4, Site::kCrash, 0.1) ? 1 : 0;
  EXPECT_GT(happened, 900);
  EXPECT_LT(happened, 1'100);
  EXPECT_EQ(chance.happened().size(), static_cast<size_t>(happened));
}

TEST(Chance, FaultsCanBeForcedAndSuppressed) {
  std::vector<FaultId> first;
  {
    Chance chance(5);
    for (int i = 0; i < 1'000; ++i) chance.Happens(4, Site::kPause, 0.01);
    first = chance.happened();
    ASSERT_GT(first.size(), 2U);
  }
  Chance chance(5);
  chance.Suppress(first[1]);
  chance.Force({4, Site::kPause, first.back().n + 1});
  for (int i = 0; i < 1'000; ++i) chance.Happens(4, Site::kPause, 0.01);
  std::vector<FaultId> expected = first;
  expected.erase(expected.begin() + 1);
  expected.push_back({4, Site::kPause, first.back().n + 1});
  EXPECT_EQ(chance.happened(), expected);
}

TEST(Chance, NamesOfFaultsCanBeReadBack) {
  const FaultId fault{17, Site::kRestartAfter, 123'456};
  EXPECT_EQ(ToText(fault), "17/RestartAfter/123456");
  FaultId parsed;
  ASSERT_TRUE(ParseFaultId(ToText(fault), &parsed));
  EXPECT_EQ(parsed, fault);
  for (const char* bad : {"", "17", "17/", "17/Nothing/1", "17/Crash/", "17/Crash/1x", "x/Crash/1", "17/There/1"}) {
    EXPECT_FALSE(ParseFaultId(bad, &parsed)) << bad;
  }
}

}  // namespace
}  // namespace percolator::sim
