// SPDX-License-Identifier: Apache-2.0

// Transactions and observers where many processes share a cluster: at a server, and in Bigtable. The tests are those of
// the embedded cluster (tests/stress), in a smaller size. Two clusters stand for two processes: one commits in one step
// if it can, the other in two phases.

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/inspect.h"
#include "percolator/observer.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "tests/processes/cluster_places.h"
#include "tests/stress/chain.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

constexpr std::chrono::seconds kLoadTime(3);  // or longer, until there are enough commits:
constexpr size_t kLeast = 50;

class AddressesTest : public ::testing::TestWithParam<ClusterPlaceKind> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<ClusterPlace>> place = GetParam().make();
    if (absl::IsUnavailable(place.status())) GTEST_SKIP() << place.status();
    ASSERT_THAT(place, IsOk());
    place_ = *std::move(place);
    for (const bool one_step : {true, false}) {
      ClusterOptions options;
      options.one_step_commit = one_step;
      absl::StatusOr<Cluster> cluster = Cluster::Open(place_->address(), options);
      ASSERT_THAT(cluster, IsOk());
      clusters_.push_back(*std::move(cluster));
    }
  }

  std::unique_ptr<ClusterPlace> place_;
  std::vector<Cluster> clusters_;
};

TEST_P(AddressesTest, SnapshotIsolationHolds) {
  HistoryKeeper keeper;
  ASSERT_THAT(SetUpLoad(clusters_[0], &keeper, 1), IsOk());
  std::atomic<bool> stop = false;
  std::vector<std::thread> loads;
  for (uint64_t i = 0; i < clusters_.size(); ++i) {
    loads.emplace_back([&, i] {
      const LoadSettings settings{
          .threads = 4, .seed = i + 1, .first_id = (i + 1) * 1'000'000, .process = static_cast<int>(i * 10)};
      EXPECT_THAT(RunLoad(clusters_[i], &keeper, settings, stop), IsOk());
    });
  }
  std::this_thread::sleep_for(kLoadTime);
  for (int i = 0; i < 600 && keeper.Copy(LoadKind::kLists).transactions.size() <= kLeast; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  stop = true;
  for (std::thread& load : loads) load.join();
  const absl::StatusOr<int64_t> money = ReadEverything(clusters_[1], &keeper, 9'000'000);
  ASSERT_THAT(money, IsOk());
  EXPECT_EQ(*money, kAccounts * kOpeningBalance);
  const History lists = keeper.Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper.Place(LoadKind::kLists, 9'000'000)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper.Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;
  EXPECT_GT(lists.transactions.size(), kLeast);
  std::cout << lists.transactions.size() << " transactions on lists\n";
}

TEST_P(AddressesTest, DerivedCellsAreExact) {
  ASSERT_THAT(SetUpChain(clusters_[0]), IsOk());
  WorkerOptions options;
  options.threads = 3;
  options.scan_period = std::chrono::milliseconds(100);
  std::vector<std::unique_ptr<Worker>> workers;
  for (const Cluster& cluster : clusters_) {
    workers.push_back(std::make_unique<Worker>(cluster, options));
    ObserveChain(workers.back().get());
    ASSERT_THAT(workers.back()->Start(), IsOk());
  }
  std::vector<std::thread> loaders;
  for (uint64_t i = 0; i < clusters_.size(); ++i) {
    loaders.emplace_back([&, i] {
      std::mt19937_64 random(i);
      for (int n = 0; n < 100; ++n) EXPECT_THAT(ChangeSources(clusters_[i], &random), IsOk());
    });
  }
  for (std::thread& loader : loaders) loader.join();
  EXPECT_THAT(workers[1]->Stop(), IsOk());  // so that the other one knows when it is idle
  ASSERT_THAT(workers[0]->WaitUntilIdle(std::chrono::seconds(120)), IsOk());
  ChainCounts counts;
  CheckChain(clusters_[0], &counts);
  EXPECT_GE(counts.changes, 200);
  EXPECT_THAT(workers[0]->Stop(), IsOk());
}

TEST_P(AddressesTest, GarbageIsCollectedAndLocksOfDeadProcessesAreSettled) {
  ASSERT_THAT(clusters_[0].CreateTable("t"), IsOk());
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(clusters_[0].Transact([&](ReadWrite& t) { t.Set({"t", "r", "c"}, std::to_string(i)); }), IsOk());
  }
  absl::StatusOr<Snapshot> before = clusters_[0].GetSnapshot();
  ASSERT_THAT(before, IsOk());
  const Timestamp then = before->timestamp();
  before = absl::CancelledError("done with it");
  ClusterOptions options;
  options.lock_lease = std::chrono::milliseconds(100);
  options.gc_retention = std::chrono::milliseconds(200);
  options.gc_period = Duration(0);
  absl::StatusOr<Cluster> collector = Cluster::Open(place_->address(), options);
  ASSERT_THAT(collector, IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_THAT(clusters_[0].Transact([&](ReadWrite& t) { t.Set({"t", "r", "c"}, "new"); }), IsOk());
  // The last reported snapshot of the first cluster is kept until its next report, 5 s later.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  absl::Status read;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ASSERT_THAT(collector->CollectGarbage(), IsOk());
    read = clusters_[1].GetSnapshotAt(then).status();
  } while (!IsSnapshotTooOld(read) && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(IsSnapshotTooOld(read)) << read;
  EXPECT_GT(collector->metrics().versions_collected, 0U);
  absl::StatusOr<Snapshot> now = clusters_[1].GetSnapshot();
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(now->Get({"t", "r", "c"}).value_or(std::nullopt), "new");
  const auto locks = Inspector(clusters_[1]).ListLocks();
  ASSERT_THAT(locks, IsOk());
  EXPECT_TRUE(locks->empty());
}

INSTANTIATE_TEST_SUITE_P(Places, AddressesTest,
                         ::testing::Values(ClusterPlaceKind{"percolator", &MakeServerPlace},
                                           ClusterPlaceKind{"bigtable", &MakeBigtablePlace}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace percolator
