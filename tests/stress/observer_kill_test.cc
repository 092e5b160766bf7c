// A process with loaders and a worker is killed with SIGKILL, again and again. Each time the cluster is opened anew, a worker
// runs until there is nothing to do, and what observers have derived is compared with what follows from the sources.
//
//     src/K value ---add---> sums/B total ---publish---> out/B total
//                      \--> sums/hot touched ---gather (weak)---> sums/hot grand
//
// "add" adds the difference between the new value and the one it has added before to the total of K's bucket B: an addition
// that is lost, or made twice, is never made good. Loaders count the changes of K, "add" counts its commits: there are not
// more of these (N2, N7).
//
// A child runs loaders and worker, and writes a dot to standard output for each transaction of a loader that has committed.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "src/base/strings.h"
#include "tests/stress/killing.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr int kSources = 40;
constexpr int kBuckets = 4;
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
  options.first_retry = std::chrono::milliseconds(1);
  return options;
}

std::string BucketOf(std::string_view source) { return StrCat("b", std::stoi(std::string(source)) % kBuckets); }

absl::StatusOr<int64_t> GetNumber(ReadView& view, std::string_view table, std::string_view row,
                                  std::string_view column) {
  const absl::StatusOr<std::optional<std::string>> value = view.Get(table, row, column);
  if (!value.ok()) return value.status();
  return value->has_value() ? std::stoll(**value) : 0;
}

absl::Status AddNumber(ReadWrite& t, std::string_view table, std::string_view row, std::string_view column,
                       int64_t number) {
  const absl::StatusOr<int64_t> old = GetNumber(t, table, row, column);
  if (!old.ok()) return old.status();
  return t.Set(table, row, column, std::to_string(*old + number));
}

absl::Status Add(ReadWrite& t, const Notification& n) {
  const absl::StatusOr<int64_t> value = GetNumber(t, "src", n.cell.row, "value");
  const absl::StatusOr<int64_t> added = GetNumber(t, "src", n.cell.row, "added");
  if (!value.ok() || !added.ok()) return value.ok() ? added.status() : value.status();
  if (absl::Status s = AddNumber(t, "sums", BucketOf(n.cell.row), "total", *value - *added); !s.ok()) return s;
  if (absl::Status s = t.Set("src", n.cell.row, "added", std::to_string(*value)); !s.ok()) return s;
  if (absl::Status s = AddNumber(t, "src", n.cell.row, "runs", 1); !s.ok()) return s;
  return t.Notify("sums", "hot", "touched");
}

absl::Status Publish(ReadWrite& t, const Notification& n) {
  const absl::StatusOr<int64_t> total = GetNumber(t, "sums", n.cell.row, "total");
  if (!total.ok()) return total.status();
  return t.Set("out", n.cell.row, "total", std::to_string(*total));
}

absl::Status Gather(ReadWrite& t, const Notification& /*n*/) {
  int64_t grand = 0;
  for (int b = 0; b < kBuckets; ++b) {
    const absl::StatusOr<int64_t> total = GetNumber(t, "sums", StrCat("b", b), "total");
    if (!total.ok()) return total.status();
    grand += *total;
  }
  return t.Set("sums", "hot", "grand", std::to_string(grand));
}

std::unique_ptr<Worker> MakeWorker(Cluster* cluster) {
  auto worker = std::make_unique<Worker>(cluster, ForWorker());
  worker->Observe({.name = "add", .table = "src", .column = "value", .run = Add});
  worker->Observe({.name = "publish", .table = "sums", .column = "total", .run = Publish});
  worker->Observe(
      {.name = "gather", .table = "sums", .column = "touched", .kind = NotificationKind::kWeak, .run = Gather});
  return worker;
}

// Changes one source, or two of them at once, which are in different rows; now and then deletes one.
absl::Status LoadOnce(Cluster* cluster, std::mt19937_64* random) {
  std::vector<std::string> rows = {std::to_string((*random)() % kSources)};
  if ((*random)() % 3 == 0) rows.push_back(std::to_string((*random)() % kSources));
  const bool deletes = (*random)() % 10 == 0;
  const auto value = static_cast<int64_t>((*random)() % 1000);
  return cluster
      ->Transact([&](ReadWrite& t) {
        for (const std::string& row : rows) {
          if (absl::Status s = AddNumber(t, "src", row, "changes", 1); !s.ok()) return s;
          absl::Status s = deletes ? t.Delete("src", row, "value") : t.Set("src", row, "value", std::to_string(value));
          if (!s.ok()) return s;
        }
        return absl::OkStatus();
      })
      .status();
}

int RunChild(const std::string& address, bool one_step, uint64_t seed) {
  absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
  if (!cluster.ok()) {
    std::cerr << "child: " << cluster.status() << "\n";
    return 2;
  }
  const std::unique_ptr<Worker> worker = MakeWorker(cluster->get());
  if (absl::Status s = worker->Start(); !s.ok()) {
    std::cerr << "child: " << s << "\n";
    return 2;
  }
  std::vector<std::thread> loaders;
  for (int i = 0; i < kLoaders; ++i) {
    loaders.emplace_back([&, i] {
      std::mt19937_64 random(seed * kLoaders + static_cast<uint64_t>(i));
      for (;;) {
        const absl::Status loaded = LoadOnce(cluster->get(), &random);
        if (!loaded.ok() && !IsConflict(loaded)) std::cerr << "child: " << loaded << "\n";
        if (loaded.ok() && write(STDOUT_FILENO, ".", 1) != 1) return;  // the test is gone
      }
    });
  }
  for (std::thread& loader : loaders) loader.join();
  return 2;
}

// Kills it so long after so many transactions of its loaders. False: it ended by itself.
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
    size_t waiting = 0;  // cells with notifications, when it was killed
    int64_t changes = 0;
    int64_t runs = 0;
  };

  static void SetUpTables(const std::string& address, bool one_step) {
    absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    ASSERT_THAT((*cluster)->CreateTable("src"), IsOk());
    ASSERT_THAT((*cluster)->CreateTable("sums", {.notify_only_columns = {"touched"}}), IsOk());
    ASSERT_THAT((*cluster)->CreateTable("out"), IsOk());
    ASSERT_THAT((*cluster)->Close(), IsOk());
  }

  // Opens the cluster after a kill, lets the observers finish, and looks.
  static void Recover(const std::string& address, bool one_step, Life* life) {
    absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(address, OptionsFor(one_step));
    ASSERT_THAT(cluster, IsOk());
    absl::StatusOr<Backlog> backlog = (*cluster)->NotificationBacklog();
    ASSERT_THAT(backlog, IsOk());
    life->waiting = backlog->cells;
    const std::unique_ptr<Worker> worker = MakeWorker(cluster->get());
    ASSERT_THAT(worker->Start(), IsOk());
    ASSERT_THAT(worker->WaitUntilIdle(std::chrono::seconds(60)), IsOk());
    backlog = (*cluster)->NotificationBacklog();
    ASSERT_THAT(backlog, IsOk());
    EXPECT_EQ(backlog->cells, 0U);
    CheckFixpoint(cluster->get(), life);
    const auto quarantined = worker->ListQuarantine();
    ASSERT_THAT(quarantined, IsOk());
    EXPECT_TRUE(quarantined->empty());
    worker->Stop();
    ASSERT_THAT((*cluster)->Close(), IsOk());
  }

  static int64_t Number(ReadView& view, std::string_view table, std::string_view row, std::string_view column) {
    const absl::StatusOr<int64_t> number = GetNumber(view, table, row, column);
    EXPECT_THAT(number, IsOk());
    return number.value_or(-1);
  }

  static void CheckFixpoint(Cluster* cluster, Life* life) {
    absl::StatusOr<Snapshot> view = cluster->Now();
    ASSERT_THAT(view, IsOk());
    std::map<std::string, int64_t> totals;
    int64_t grand = 0;
    for (int i = 0; i < kSources; ++i) {
      const std::string row = std::to_string(i);
      const int64_t value = Number(*view, "src", row, "value");
      EXPECT_EQ(Number(*view, "src", row, "added"), value) << "source " << i;
      EXPECT_LE(Number(*view, "src", row, "runs"), Number(*view, "src", row, "changes")) << "source " << i;
      totals[BucketOf(row)] += value;
      grand += value;
      life->changes += Number(*view, "src", row, "changes");
      life->runs += Number(*view, "src", row, "runs");
    }
    for (const auto& [bucket, total] : totals) {
      EXPECT_EQ(Number(*view, "sums", bucket, "total"), total) << bucket;
      EXPECT_EQ(Number(*view, "out", bucket, "total"), total) << bucket;
    }
    EXPECT_EQ(Number(*view, "sums", "hot", "grand"), grand);
  }
};

TEST_P(ObserverKillTest, WhatIsDerivedIsExact) {
  const bool one_step = GetParam();
  TempDir dir;
  const std::string address = "rocksdb:" + dir.path() + "/c";
  SetUpTables(address, one_step);
  std::mt19937_64 random(TestSeed());
  int in_the_middle = 0;
  Life life;
  for (int cycle = 1; cycle <= Kills(); ++cycle) {
    SCOPED_TRACE(StrCat("kill ", cycle));
    Child child(address, one_step, random());
    const int transactions = 2 + static_cast<int>(random() % 100);
    ASSERT_TRUE(KillAfter(&child, transactions, std::chrono::microseconds(random() % 10000))) << "it ended by itself";
    life = {};
    Recover(address, one_step, &life);
    if (HasFailure()) return;
    if (life.waiting > 0) ++in_the_middle;
  }
  std::cout << Kills() << " kills, " << in_the_middle << " with notifications waiting; " << life.changes << " changes, "
            << life.runs << " runs of the first observer\n";
  EXPECT_GT(2 * in_the_middle, Kills());
  EXPECT_GT(life.runs, Kills());
}

INSTANTIATE_TEST_SUITE_P(Modes, ObserverKillTest, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "OneStep" : "TwoPhase"; });

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::KillTestMain(argc, argv, percolator::RunChild); }
