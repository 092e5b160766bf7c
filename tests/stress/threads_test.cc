// SPDX-License-Identifier: Apache-2.0

// Real threads on the embedded cluster, for a while; then both checkers judge the record.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr uint64_t kLeast = 500;  // the min number of commits, however long they take

struct Mode {
  const char* name;
  bool one_step;
  Duration gc_period;
};

class ThreadsTest : public ::testing::TestWithParam<Mode> {};

TEST_P(ThreadsTest, HistoriesHaveAnExplanation) {
  TempDir dir;
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;
  options.one_step_commit = GetParam().one_step;
  options.gc_period = GetParam().gc_period;
  options.lock_lease = std::chrono::milliseconds(500);
  options.gc_retention = std::chrono::milliseconds(1000);
  const absl::StatusOr<Cluster> cluster = Cluster::Open("rocksdb:" + dir.path() + "/c", options);
  ASSERT_THAT(cluster, IsOk());
  HistoryKeeper keeper;
  ASSERT_THAT(SetUpLoad(*cluster, &keeper, 1), IsOk());
  std::atomic<bool> stop{false};
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    const auto enough = [&] { return cluster->metrics().commits > kLeast && cluster->metrics().conflicts > 0; };
    for (int i = 0; i < 1200 && !enough(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  const absl::Status run = RunLoad(*cluster, &keeper, {.threads = 16, .seed = 7, .first_id = 2}, stop);
  timer.join();
  ASSERT_THAT(run, IsOk());
  constexpr uint64_t kLast = 1'000'000'000;
  const absl::StatusOr<int64_t> total = ReadEverything(*cluster, &keeper, kLast);
  ASSERT_THAT(total, IsOk());
  EXPECT_EQ(*total, kAccounts * kOpeningBalance);

  const History lists = keeper.Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper.Place(LoadKind::kLists, kLast)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper.Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;

  const ClusterMetrics metrics = cluster->metrics();
  std::cout << metrics.commits << " commits, " << metrics.conflicts << " conflicts, " << metrics.foreign_locks_found
            << " locks met, " << metrics.versions_collected << " versions collected, " << graph.dependencies
            << " dependencies, " << graph.write_skew_pivots << " write skews\n";
  EXPECT_GT(metrics.commits, kLeast);
  EXPECT_GT(metrics.conflicts, 0u);
  EXPECT_GT(graph.write_skew_pivots, 0u) << "the load did not come near what it should test";
  EXPECT_THAT(cluster->Close(), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Modes, ThreadsTest,
                         ::testing::Values(Mode{"OneStep", true, Duration(0)}, Mode{"TwoPhase", false, Duration(0)},
                                           Mode{"OneStepWithGc", true, std::chrono::milliseconds(50)},
                                           Mode{"TwoPhaseWithGc", false, std::chrono::milliseconds(50)}),
                         [](const auto& mode) { return mode.param.name; });

}  // namespace
}  // namespace percolator
