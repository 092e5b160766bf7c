// SPDX-License-Identifier: Apache-2.0

// A process with loaders and a worker is killed repeatedly with SIGKILL. Each time the cluster is opened again, a
// worker runs until no work is left, and the derived cells are compared with the sources (chain.h).
//
// A child runs loaders and worker, and writes a dot to standard output for each committed transaction of a loader.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "src/base/strings.h"
#include "tests/stress/chain.h"
#include "tests/stress/killing.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr int kLoaders = 3;

ClusterOptions OptionsFor(bool one_step) {
  return OptionsForKilling(one_step, /*lock_lease=*/std::chrono::milliseconds(200),
                           /*gc_retention=*/std::chrono::seconds(1));
}

WorkerOptions ForWorker() {
  WorkerOptions options;
  options.threads = 3;
  options.scanners = 2;
  options.scan_period = std::chrono::milliseconds(50);
  options.min_retry_delay = std::chrono::milliseconds(1);
  return options;
}

std::unique_ptr<Worker> MakeWorker(const Cluster& cluster) {
  auto worker = std::make_unique<Worker>(cluster, ForWorker());
  ObserveChain(worker.get());
  return worker;
}

int RunChild(const std::string& address, bool one_step, uint64_t seed) {
  const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
  if (!cluster.ok()) {
    std::cerr << "child: " << cluster.status() << "\n";
    return 2;
  }
  const std::unique_ptr<Worker> worker = MakeWorker(*cluster);
  if (absl::Status s = worker->Start(); !s.ok()) {
    std::cerr << "child: " << s << "\n";
    return 2;
  }
  std::vector<std::thread> loaders;
  for (int i = 0; i < kLoaders; ++i) {
    loaders.emplace_back([&, i] {
      std::mt19937_64 random(seed * kLoaders + static_cast<uint64_t>(i));
      for (;;) {
        const absl::Status loaded = ChangeSources(*cluster, &random);
        if (!loaded.ok() && !IsConflict(loaded)) std::cerr << "child: " << loaded << "\n";
        if (loaded.ok() && write(STDOUT_FILENO, ".", 1) != 1) return;  // the test has ended
      }
    });
  }
  for (std::thread& loader : loaders) loader.join();
  return 2;
}

// Kills it this time after this number of transactions of its loaders. Returns false if it ended by itself.
bool KillAfter(Child* child, int transactions, std::chrono::microseconds time) {
  char dot;
  while (transactions > 0 && read(child->fd(), &dot, 1) == 1) --transactions;
  std::this_thread::sleep_for(time);
  child->Kill();
  return child->WaitForEnd() && transactions == 0;
}

class ObserverKillTest : public ::testing::TestWithParam<bool> {
 protected:
  struct Life {
    size_t waiting = 0;  // cells with notifications, at the kill
    ChainCounts counts;
  };

  static void SetUpTables(const std::string& address, bool one_step) {
    const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(SetUpChain(*cluster), IsOk());
    ASSERT_THAT(cluster->Close(), IsOk());
  }

  // Opens the cluster after a kill, lets the observers finish, and checks.
  static void Recover(const std::string& address, bool one_step, Life* life) {
    const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    absl::StatusOr<Backlog> backlog = cluster->CountNotifications();
    ASSERT_THAT(backlog, IsOk());
    life->waiting = backlog->cells;
    const std::unique_ptr<Worker> worker = MakeWorker(*cluster);
    ASSERT_THAT(worker->Start(), IsOk());
    ASSERT_THAT(worker->WaitUntilIdle(std::chrono::seconds(120)), IsOk());
    backlog = cluster->CountNotifications();
    ASSERT_THAT(backlog, IsOk());
    EXPECT_EQ(backlog->cells, 0U);
    CheckChain(*cluster, &life->counts);
    const auto quarantined = worker->ListQuarantine();
    ASSERT_THAT(quarantined, IsOk());
    EXPECT_TRUE(quarantined->empty());
    worker->Stop().IgnoreError();
    ASSERT_THAT(cluster->Close(), IsOk());
  }
};

TEST_P(ObserverKillTest, DerivedCellsAreExactAfterKills) {
  const bool one_step = GetParam();
  TempDir dir;
  const std::string address = "rocksdb:" + dir.path() + "/c";
  SetUpTables(address, one_step);
  std::mt19937_64 random(TestSeed());
  int in_the_middle = 0;
  Life life;
  // The machine decides whether loaders or observers are faster. So it kills some more times, if too few kills were in
  // the middle.
  const auto goes_on = [&](int cycle) {
    return cycle <= Kills() || (2 * in_the_middle <= Kills() && cycle <= 3 * Kills());
  };
  int kills = 0;
  for (int cycle = 1; goes_on(cycle); ++cycle, ++kills) {
    SCOPED_TRACE(StrCat("kill ", cycle));
    Child child(address, one_step, random());
    const int transactions = 2 + static_cast<int>(random() % 100);
    ASSERT_TRUE(KillAfter(&child, transactions, std::chrono::microseconds(random() % 10000))) << "it ended by itself";
    life = {};
    Recover(address, one_step, &life);
    if (HasFailure()) return;
    if (life.waiting > 0) ++in_the_middle;
  }
  std::cout << kills << " kills, " << in_the_middle << " with notifications waiting; " << life.counts.changes
            << " changes, " << life.counts.runs << " runs of the first observer\n";
  EXPECT_GT(2 * in_the_middle, Kills());
  EXPECT_GT(life.counts.runs, Kills());
}

INSTANTIATE_TEST_SUITE_P(Modes, ObserverKillTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::KillTestMain(argc, argv, percolator::RunChild); }
