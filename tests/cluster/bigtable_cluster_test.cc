// SPDX-License-Identifier: Apache-2.0

// Transactions on a store in Bigtable: real threads of two clusters for a bounded time, judged by the checkers of
// histories; and the number of requests of a transaction.

#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "src/base/strings.h"
#include "src/coord/local_coordinator.h"
#include "src/oracle/local_oracle.h"
#include "src/store/bigtable/bigtable_store.h"
#include "tests/processes/emulator.h"
#include "tests/server/bigtable_server.h"
#include "tests/stress/load.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

// The resources of a server, while it lives.
struct Endpoint {
  std::string target;
  std::shared_ptr<void> owned;
};

absl::StatusOr<Endpoint> OfEmulator(absl::StatusOr<std::unique_ptr<Emulator>> emulator) {
  if (!emulator.ok()) return emulator.status();
  const std::shared_ptr<Emulator> owned = *std::move(emulator);
  return Endpoint{owned->target(), owned};
}

absl::StatusOr<Endpoint> StartServe() {
  struct Owned {
    std::unique_ptr<Store> store = NewMemoryStore();
    BigtableServer server{store.get()};
  };
  const auto owned = std::make_shared<Owned>();
  return Endpoint{owned->server.target(), owned};
}

struct Kind {
  const char* name;
  std::function<absl::StatusOr<Endpoint>()> start;
};

void PrintTo(const Kind& kind, std::ostream* os) { *os << kind.name; }

class BigtableClusterTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    absl::StatusOr<Endpoint> endpoint = GetParam().start();
    if (absl::IsUnavailable(endpoint.status())) GTEST_SKIP() << endpoint.status();
    ASSERT_THAT(endpoint, IsOk());
    endpoint_ = *std::move(endpoint);
    oracle_ = LocalOracle::Create(dir_.path() + "/oracle", Timestamp()).value();
    coordinator_ = std::make_shared<LocalCoordinator>(oracle_.get());
  }

  std::shared_ptr<Store> OpenStore(Duration safe_point_age = std::chrono::milliseconds(100)) const {
    BigtableStoreOptions options;
    options.project = "p";
    options.instance = "i";
    options.endpoint = endpoint_.target;
    options.safe_point_age = safe_point_age;
    return OpenBigtableStore(options).value();
  }

  Cluster NewCluster(const std::shared_ptr<Store>& store, const ClusterOptions& options) const {
    return Assemble({.store = store, .oracle = oracle_, .coordinator = coordinator_}, options).value();
  }

  TempDir dir_;
  Endpoint endpoint_;
  std::shared_ptr<Oracle> oracle_;
  std::shared_ptr<Coordinator> coordinator_;
};

void Judge(const Cluster& cluster, HistoryKeeper* keeper) {
  constexpr uint64_t kLast = 1'000'000'000;
  const absl::StatusOr<int64_t> total = ReadEverything(cluster, keeper, kLast);
  ASSERT_THAT(total, IsOk());
  EXPECT_EQ(*total, kAccounts * kOpeningBalance);
  const History lists = keeper->Copy(LoadKind::kLists);
  const GraphReport graph = CheckGraph(lists, {.final_read = keeper->Place(LoadKind::kLists, kLast)});
  EXPECT_TRUE(graph.findings.ok()) << graph.findings;
  const Findings sweep = CheckSweep(lists);
  EXPECT_TRUE(sweep.ok()) << sweep;
  const Findings bank = CheckSweep(keeper->Copy(LoadKind::kBank));
  EXPECT_TRUE(bank.ok()) << bank;
}

TEST_P(BigtableClusterTest, HistoriesHaveAnExplanation) {
  constexpr uint64_t kLeast = 20;  // commits
  ClusterOptions options;
  options.gc_period = std::chrono::milliseconds(200);
  options.lock_lease = std::chrono::milliseconds(1000);
  options.gc_retention = std::chrono::milliseconds(2000);
  const Cluster clusters[] = {NewCluster(OpenStore(), options), NewCluster(OpenStore(), options)};
  HistoryKeeper keeper;
  ASSERT_THAT(SetUpLoad(clusters[0], &keeper, 1), IsOk());
  std::atomic<bool> stop{false};
  absl::Status runs[2];
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const LoadSettings settings{.threads = 4,
                                  .seed = 7 + static_cast<uint64_t>(i),
                                  .first_id = i == 0 ? 2u : 2'000'000u,
                                  .process = 10 * i,
                                  .patient = true};
      runs[i] = RunLoad(clusters[i], &keeper, settings, stop);
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
  for (int i = 0; i < 600 && clusters[0].metrics().commits <= kLeast; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& run : runs) ASSERT_THAT(run, IsOk());
  const ClusterMetrics stats = clusters[0].metrics();
  // The cluster that collects garbage knows its own snapshots at once, and those of others only after a while.
  EXPECT_THAT(clusters[0].Close(), IsOk());
  Judge(clusters[1], &keeper);
  std::cout << stats.commits << " commits, " << stats.conflicts << " conflicts, " << stats.foreign_locks_found
            << " locks met, " << stats.versions_collected << " versions collected by one of two\n";
  EXPECT_GT(stats.commits, kLeast);
}

BigtableRpcs operator-(const BigtableRpcs& a, const BigtableRpcs& b) {
  return {.read_rows = a.read_rows - b.read_rows,
          .mutate_row = a.mutate_row - b.mutate_row,
          .mutate_rows = a.mutate_rows - b.mutate_rows,
          .check_and_mutate_row = a.check_and_mutate_row - b.check_and_mutate_row,
          .sample_row_keys = a.sample_row_keys - b.sample_row_keys,
          .admin = a.admin - b.admin,
          .repeated = a.repeated - b.repeated};
}

std::string Text(const BigtableRpcs& rpcs) {
  return StrCat(rpcs.read_rows, " ReadRows, ", rpcs.check_and_mutate_row, " CheckAndMutateRow, ",
                rpcs.mutate_row + rpcs.mutate_rows, " MutateRow and MutateRows");
}

void WriteRows(ReadWrite& t, int rows, size_t value_bytes = 1) {
  for (int i = 0; i < rows; ++i) t.Set({"t", StrCat("row", i), "c"}, std::string(value_bytes, 'v'));
}

absl::Status ReadRows(ReadWrite& t, int rows) {
  std::vector<CellName> cells;
  for (int i = 0; i < rows; ++i) cells.push_back({"t", StrCat("row", i), "c"});
  return t.GetCells(cells).status();
}

// docs/bigtable.md has the arithmetic, and these figures.
TEST_P(BigtableClusterTest, ATransactionTakesTheDocumentedRequests) {
  ClusterOptions options;
  options.gc_period = Duration(0);
  const std::shared_ptr<Store> store = OpenStore(std::chrono::hours(1));
  {
    const Cluster cluster = NewCluster(store, options);
    ASSERT_THAT(cluster.CreateTable("t"), IsOk());
    ASSERT_THAT(cluster.Transact([](ReadWrite& t) { WriteRows(t, 1); }), IsOk());
  }
  // A cluster of its own for each, because closing it waits for the secondaries.
  const auto count = [&](const std::function<absl::Status(ReadWrite&)>& fn) {
    const Cluster cluster = NewCluster(store, options);
    // The first transaction also reads the table's schema.
    EXPECT_THAT(cluster.Transact([](ReadWrite& t) { t.Set({"t", "first", "c"}, "v"); }), IsOk());
    const BigtableRpcs before = RpcsOf(*store);
    EXPECT_THAT(cluster.Transact(fn), IsOk());
    EXPECT_THAT(cluster.Close(), IsOk());
    return RpcsOf(*store) - before;
  };
  const auto text = [&](const std::function<absl::Status(ReadWrite&)>& fn) { return Text(count(fn)); };
  const auto write = [](int rows) {
    return [rows](ReadWrite& t) {
      WriteRows(t, rows);
      return absl::OkStatus();
    };
  };
  EXPECT_EQ(text(write(1)), "0 ReadRows, 2 CheckAndMutateRow, 0 MutateRow and MutateRows");
  EXPECT_EQ(text(write(10)), "0 ReadRows, 20 CheckAndMutateRow, 0 MutateRow and MutateRows");
  const auto read_and_write = [](int rows, size_t value_bytes) {
    return [rows, value_bytes](ReadWrite& t) -> absl::Status {
      if (absl::Status s = ReadRows(t, rows); !s.ok()) return s;
      WriteRows(t, rows, value_bytes);
      return absl::OkStatus();
    };
  };
  EXPECT_EQ(text(read_and_write(1, 1)), "1 ReadRows, 2 CheckAndMutateRow, 0 MutateRow and MutateRows");
  EXPECT_EQ(text(read_and_write(10, 10'000)), "1 ReadRows, 20 CheckAndMutateRow, 0 MutateRow and MutateRows");
  EXPECT_EQ(text([](ReadWrite& t) { return ReadRows(t, 10); }),
            "2 ReadRows, 0 CheckAndMutateRow, 0 MutateRow and MutateRows")
      << "of long values";
}

INSTANTIATE_TEST_SUITE_P(Servers, BigtableClusterTest,
                         ::testing::Values(Kind{"EmulatorDebian", [] { return OfEmulator(Emulator::Start()); }},
                                           Kind{"EmulatorPackaged",
                                                [] { return OfEmulator(Emulator::StartPackaged()); }},
                                           Kind{"Serve", &StartServe}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace percolator
