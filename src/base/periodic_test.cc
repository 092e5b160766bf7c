// SPDX-License-Identifier: Apache-2.0

#include "src/base/periodic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/harness/virtual_runtime.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(PeriodicTest, RunsOncePerPeriod) {
  VirtualRuntime runtime;
  std::vector<Duration> runs;
  {
    Periodic periodic(&runtime, seconds(10), [&] { runs.push_back(runtime.Elapsed()); });
    runtime.Sleep(seconds(35));
  }
  EXPECT_THAT(runs, ElementsAre(seconds(10), seconds(20), seconds(30)));
}

TEST(PeriodicTest, ALongRunDelaysTheNext) {
  VirtualRuntime runtime;
  std::vector<Duration> runs;
  {
    Periodic periodic(&runtime, seconds(10), [&] {
      runs.push_back(runtime.Elapsed());
      runtime.Sleep(seconds(15));
    });
    runtime.Sleep(seconds(70));
  }
  EXPECT_THAT(runs, ElementsAre(seconds(10), seconds(35), seconds(60)));
}

TEST(PeriodicTest, StopsAtOnceBetweenRunsAndAfterARunInProgress) {
  VirtualRuntime runtime;
  bool ended = false;
  {
    Periodic waiting(&runtime, std::chrono::hours(1000), [] {});
    Periodic running(&runtime, seconds(1), [&] {
      runtime.Sleep(seconds(5));
      ended = true;
    });
    runtime.Sleep(seconds(2));
  }
  EXPECT_TRUE(ended);
  EXPECT_LT(runtime.Elapsed(), seconds(20));
}

}  // namespace
}  // namespace percolator
