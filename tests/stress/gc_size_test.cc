// SPDX-License-Identifier: Apache-2.0

// The store stays small under a steady load of overwrites and deletes, while garbage collection runs beside it.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/store.h"
#include "src/oracle/local_oracle.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

constexpr int kRows = 20;

// The number of versions in all families of the table.
size_t CellsIn(Store* store, const std::string& table) {
  const absl::StatusOr<ScanPage> page = store->Scan(
      {table, RowRange::All(), {{Family::kData}, {Family::kLock}, {Family::kWrite}, {Family::kNotify}}, 100'000});
  EXPECT_THAT(page, IsOk());
  size_t cells = 0;
  for (const Row& row : page->rows) cells += row.cells.size();
  return cells;
}

TEST(GcSizeTest, OverwritesDeletesAndRollbacksDoNotAccumulate) {
  TempDir dir;
  absl::StatusOr<std::unique_ptr<Store>> opened =
      OpenRocksStore(dir.path() + "/s", {.durability = Durability::kNoSync});
  ASSERT_THAT(opened, IsOk());
  const std::shared_ptr<Store> store = *std::move(opened);
  auto oracle = LocalOracle::Create(dir.path() + "/oracle", Timestamp());
  ASSERT_THAT(oracle, IsOk());
  const std::unique_ptr<Coordinator> coordinator = NewLocalCoordinator(oracle->get());
  ClusterOptions options;
  options.one_step_commit = false;
  options.lock_lease = std::chrono::milliseconds(200);
  options.gc_retention = std::chrono::milliseconds(400);
  options.gc_period = std::chrono::milliseconds(10);
  const absl::StatusOr<Cluster> cluster = Assemble({store, Borrow(oracle->get()), Borrow(coordinator.get())}, options);
  ASSERT_THAT(cluster, IsOk());
  ASSERT_THAT(cluster->CreateTable("t"), IsOk());

  // Runs at least this long, and until garbage collection has run: on a slow machine that takes a while.
  const auto begin = std::chrono::steady_clock::now();
  const auto goes_on = [&] {
    const auto passed = std::chrono::steady_clock::now() - begin;
    return passed < std::chrono::milliseconds(1500) ||
           (cluster->metrics().versions_collected == 0 && passed < std::chrono::seconds(120));
  };
  int64_t commits = 0;
  int64_t conflicts = 0;
  while (goes_on()) {
    const std::string row = "row" + std::to_string(commits % kRows);
    Transaction loser(*cluster);
    ASSERT_THAT(loser.Get({"t", row, "c"}), IsOk());
    // Long values also have cells in the family data. Every seventh is a delete; there are verify records and markers
    // too.
    const absl::Status done = cluster->Transact([&](ReadWrite& t) {
      t.Verify({"t", "guard", "c"});
      if (commits % 7 == 0) {
        t.Delete({"t", row, "c"});
      } else {
        t.Set({"t", row, "c"}, std::string(commits % 2 == 0 ? 10 : 1000, 'v'));
      }
    });
    ASSERT_THAT(done, IsOk());
    ++commits;
    loser.Set({"t", row, "c"}, "too late");
    ASSERT_THAT(loser.status(), IsOk());
    conflicts += loser.Commit().committed() ? 0 : 1;
  }
  EXPECT_EQ(conflicts, commits);
  const size_t before = CellsIn(store.get(), "t");
  const uint64_t collected_beside = cluster->metrics().versions_collected;

  // Without writers, after the retention one version is left of each cell that has a value.
  absl::StatusOr<Timestamp> safe_point = cluster->CollectGarbage();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (CellsIn(store.get(), "t") > 2 * kRows && std::chrono::steady_clock::now() < patience) {
    safe_point = cluster->CollectGarbage();
    ASSERT_THAT(safe_point, IsOk());
  }
  const size_t after = CellsIn(store.get(), "t");
  const ClusterMetrics metrics = cluster->metrics();
  std::cout << commits << " commits, " << conflicts << " conflicts; cells while it ran: " << before
            << ", afterwards: " << after << "; collected: " << metrics.versions_collected << "\n";
  EXPECT_LE(after, 2u * kRows);
  EXPECT_GT(metrics.versions_collected, static_cast<uint64_t>(commits));
  EXPECT_GT(collected_beside, 0u) << "garbage collection beside the load collected nothing";
  EXPECT_THAT(cluster->Close(), IsOk());
}

}  // namespace
}  // namespace percolator
