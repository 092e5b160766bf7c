// SPDX-License-Identifier: Apache-2.0

// A process that runs a load on the embedded cluster is killed repeatedly with SIGKILL. Each time the cluster is opened
// again, everything is read, and the money counted. At the end both checkers judge the history of all lives. A child
// runs the load and writes its record to standard output.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "src/base/strings.h"
#include "tests/stress/killing.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr uint64_t kIdsPerLife = 1'000'000;

ClusterOptions OptionsFor(bool one_step) {
  return OptionsForKilling(one_step, /*lock_lease=*/std::chrono::milliseconds(300),
                           /*gc_retention=*/std::chrono::seconds(2));
}

int RunChild(const std::string& address, bool one_step, uint64_t life) {
  const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
  if (!cluster.ok()) {
    std::cerr << "child: " << cluster.status() << "\n";
    return 2;
  }
  PipeRecorder recorder(STDOUT_FILENO);
  const std::atomic<bool> never{false};
  const LoadSettings settings{
      .threads = 6, .seed = life, .first_id = life * kIdsPerLife, .process = static_cast<int>(life * 10)};
  const absl::Status status = RunLoad(*cluster, &recorder, settings, never);
  std::cerr << "child: " << status << "\n";
  return 2;
}

// Passes `lines` lines of its record to the keeper, kills it, and passes on the rest that it had written. Returns false
// if it ended by itself.
bool RunAndKill(Child* child, int lines, HistoryKeeper* keeper, int* events) {
  std::string buffered;
  bool killed = false;
  char chunk[65536];
  for (ssize_t n = 0; (n = read(child->fd(), chunk, sizeof(chunk))) > 0;) {
    buffered.append(chunk, static_cast<size_t>(n));
    size_t start = 0;
    for (size_t end = 0; (end = buffered.find('\n', start)) != std::string::npos; start = end + 1) {
      EXPECT_TRUE(PipeRecorder::Replay(buffered.substr(start, end - start), keeper));
      ++*events;
      if (--lines == 0) {
        child->Kill();
        killed = true;
      }
    }
    buffered.erase(0, start);
  }
  return child->WaitForEnd() && killed;
}

class KillTest : public ::testing::TestWithParam<bool> {};

TEST_P(KillTest, NothingIsLostOrHalfApplied) {
  const bool one_step = GetParam();
  TempDir dir;
  const std::string address = "rocksdb:" + dir.path() + "/c";
  HistoryKeeper keeper;
  {
    const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT(SetUpLoad(*cluster, &keeper, 1), IsOk());
    ASSERT_THAT(cluster->Close(), IsOk());
  }
  std::mt19937_64 random(TestSeed());
  int events = 0;
  uint64_t locks = 0;
  uint64_t last_read = 0;
  for (int life = 1; life <= Kills(); ++life) {
    Child child(address, one_step, static_cast<uint64_t>(life));
    ASSERT_TRUE(RunAndKill(&child, 1 + static_cast<int>(random() % 800), &keeper, &events))
        << "the child ended by itself";
    const absl::StatusOr<Cluster> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    last_read = static_cast<uint64_t>(life) * kIdsPerLife + kIdsPerLife - 1;
    const absl::StatusOr<int64_t> total = ReadEverything(*cluster, &keeper, last_read);
    ASSERT_THAT(total, IsOk());
    ASSERT_EQ(*total, kAccounts * kOpeningBalance) << "after kill " << life;
    locks += cluster->metrics().foreign_locks_found;
    ASSERT_THAT(cluster->Close(), IsOk());
  }
  const History lists = keeper.Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper.Place(LoadKind::kLists, last_read)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper.Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;
  std::cout << Kills() << " kills, " << events << " events, " << lists.transactions.size() << " transactions on lists, "
            << locks << " locks of dead processes met\n";
  EXPECT_GT(events, 20 * Kills());
}

INSTANTIATE_TEST_SUITE_P(Modes, KillTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::KillTestMain(argc, argv, percolator::RunChild); }
