// SPDX-License-Identifier: Apache-2.0

// Workers whose observers fail, or whose queue is short: which cells wait, and for how long.

#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

using std::chrono::hours;

class WorkerQueueTest : public WorkerFixture {
 protected:
  // Options with which a failed run is not repeated during the test.
  static WorkerOptions Once() {
    WorkerOptions options = Options();
    options.min_retry_delay = options.max_retry_delay = hours(1);
    return options;
  }
  static bool HasFailed(const Worker& worker) {
    return Eventually([&] { return worker.metrics()[0].failures > 0; });
  }
};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerQueueTest, kClusterKinds, KindName);

// Regression: units of a dropped table were retried forever, and took the room of others.
TEST_P(WorkerQueueTest, ADroppedTableIsNotTriedForever) {
  Worker worker(*cluster_, Options());
  ObserverSpec spec = Spec("o", "c", Fail);
  spec.max_attempts = std::numeric_limits<int>::max();
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c", "v");
  ASSERT_TRUE(HasFailed(worker));
  ASSERT_THAT(cluster_->DropTable("docs"), IsOk());
  EXPECT_TRUE(Eventually([&] { return worker.metrics()[0].pending == 0; }));
}

// A cell whose observer had no room in the queue rests for a scan period. WaitUntilIdle does not wait for that.
TEST_P(WorkerQueueTest, WaitUntilIdleDoesNotRestForAScanPeriod) {
  WorkerOptions options = Options();
  options.max_queued_cells = 4;
  options.scan_period = hours(1);
  std::atomic<int> slow_runs = 0;
  std::atomic<int> quick_runs = 0;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("quick", "c", Count(&quick_runs)));
  ObserverSpec slow = Spec("slow", "c", [&](ReadWrite& /*t*/, const Notification& /*n*/) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++slow_runs;
  });
  slow.max_concurrency = 1;
  worker.Observe(slow);
  ASSERT_THAT(worker.Start(), IsOk());
  constexpr int kRows = 20;
  for (int i = 0; i < kRows; ++i) Set(StrCat("r", i), "c", "v");
  EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(slow_runs, kRows);
}

// N11. Regression: in a queue shorter than the list of observers, one that failed kept the only place.
TEST_P(WorkerQueueTest, EveryObserverHasAPlaceInAShortQueue) {
  WorkerOptions options = Once();
  options.max_queued_cells = 1;
  std::atomic<int> runs = 0;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("fails", "c", Fail));
  worker.Observe(Spec("works", "d", Count(&runs)));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c", "v");
  ASSERT_TRUE(HasFailed(worker));
  Set("r", "d", "v");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

// N11. Regression: while a unit waited to be retried its row stayed claimed, and a worker with other observers never
// reached it.
TEST_P(WorkerQueueTest, AnObserverThatFailsDoesNotKeepTheRowFromOtherWorkers) {
  WorkerOptions options = Once();
  Worker failing(*cluster_, options);
  failing.Observe(Spec("fails", "c", Fail));
  ASSERT_THAT(failing.Start(), IsOk());
  options.add_only = true;
  std::atomic<int> runs = 0;
  Worker working(*cluster_, options);
  working.Observe(Spec("works", "d", Count(&runs)));
  ASSERT_THAT(working.Start(), IsOk());
  Set("r", "c", "v");
  ASSERT_TRUE(HasFailed(failing));
  Set("r", "d", "v");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

// Adding to a time must not overflow it: a retry that is due in the past is a loop without a pause.
TEST_P(WorkerQueueTest, TheLongestRetryDelayDoesNotOverflow) {
  WorkerOptions options = Options();
  options.min_retry_delay = options.max_retry_delay = Duration::max();
  Worker worker(*cluster_, options);
  ObserverSpec spec = Spec("o", "c", Fail);
  spec.max_attempts = std::numeric_limits<int>::max();
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c", "v");
  ASSERT_TRUE(HasFailed(worker));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(worker.metrics()[0].failures, 1);
}

TEST_P(WorkerQueueTest, ACallbackThatThrowsDoesNotStopTheWorker) {
  std::atomic<int> runs = 0;
  WorkerOptions options = Options();
  options.on_commit = [](std::string_view /*observer*/, const Notification& /*n*/, Timestamp /*commit_ts*/) {
    throw std::runtime_error("thrown by on_commit");
  };
  Worker worker(*cluster_, options);
  worker.Observe(Spec("o", "c", Count(&runs)));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("1", "c", "v");
  Set("2", "c", "v");
  EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace percolator
