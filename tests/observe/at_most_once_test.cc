// SPDX-License-Identifier: Apache-2.0

// For each change at most one run of an observer commits (N2), counted in the store itself: eight workers without
// claims, on real threads, run the same observers while writers continue. Every version is kept, so the audit can check
// for each cell and observer that the cell has changed between any two acknowledgements. The number of acknowledgements
// equals the number of runs that reported a commit, and the counter that the runs have increased.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/oracle/local_oracle.h"
#include "src/txn/columns.h"
#include "tests/harness/raw_cells.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::IsEmpty;

constexpr int kWorkers = 8;
constexpr int kWriters = 3;
constexpr int kRows = 3;
constexpr int kWrites = 100;  // per writer

struct Mode {
  std::string name;
  bool on_disk = false;
  bool one_step = true;
};

class AtMostOnce : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (GetParam().on_disk) {
      RocksOptions options;
      options.durability = Durability::kNoSync;
      absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir_.path() + "/store", options);
      ASSERT_THAT(store, IsOk());
      store_ = *std::move(store);
    } else {
      store_ = NewMemoryStore();
    }
    absl::StatusOr<std::unique_ptr<LocalOracle>> oracle = LocalOracle::Create(dir_.path() + "/oracle", Timestamp());
    ASSERT_THAT(oracle, IsOk());
    oracle_ = *std::move(oracle);
    coordinator_ = NewLocalCoordinator(oracle_.get());
    ClusterOptions options;
    options.one_step_commit = GetParam().one_step;
    options.gc_period = Duration(0);
    absl::StatusOr<Cluster> cluster = Assemble({store_, oracle_, coordinator_}, options);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *cluster;
    ASSERT_THAT(cluster_->CreateTable("docs"), IsOk());
  }

  // Counts the commits in `column` of the changed cell's row.
  static ObserverFunction CountIn(const std::string& column) {
    return [column](ReadWrite& t, const Notification& n) -> absl::Status {
      const auto old = t.Get({n.cell.table, n.cell.row, column});
      if (!old.ok()) return old.status();
      t.Set({n.cell.table, n.cell.row, column}, std::to_string(old->has_value() ? std::stoi(**old) + 1 : 1));
      return absl::OkStatus();
    };
  }

  void MakeWorkers() {
    WorkerOptions options;
    options.threads = 2;
    options.scan_period = std::chrono::milliseconds(20);
    options.min_retry_delay = std::chrono::milliseconds(1);
    options.claims = false;
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<Worker>(*cluster_, options));
      for (const char* name : {"first", "second"}) {
        workers_.back()->Observe(
            {.name = name, .table = "docs", .column = "contents", .run = CountIn(StrCat("by_", name))});
      }
      ASSERT_THAT(workers_.back()->Start(), IsOk());
    }
  }

  // Sets, and sometimes deletes.
  void Write() {
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([this, w] {
        for (int i = 0; i < kWrites; ++i) {
          const std::string row = StrCat("d", (w + i) % kRows);
          EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) {
            i % 7 == 0 ? t.Delete({"docs", row, "contents"}) : t.Set({"docs", row, "contents"}, StrCat(w, " ", i));
          }),
                      IsOk());
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
  }

  size_t Records(const std::string& row, const std::string& column) {
    const absl::StatusOr<std::vector<Row>> rows =
        store_->Read({{"docs", row, {{Family::kWrite, column, TimestampRange::All()}}}});
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->front().cells.size() : 0;
  }

  TempDir dir_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Oracle> oracle_;
  std::shared_ptr<Coordinator> coordinator_;
  std::optional<Cluster> cluster_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

INSTANTIATE_TEST_SUITE_P(Modes, AtMostOnce,
                         ::testing::Values(Mode{"memory"}, Mode{"memory_two_phases", false, false},
                                           Mode{"rocksdb", true}, Mode{"rocksdb_two_phases", true, false}),
                         [](const auto& test) { return test.param.name; });

TEST_P(AtMostOnce, EightWorkersWithoutClaims) {
  MakeWorkers();
  Write();
  ASSERT_THAT(workers_[0]->WaitUntilIdle(std::chrono::seconds(120)), IsOk());
  for (const auto& worker : workers_) EXPECT_THAT(worker->Stop(), IsOk());
  absl::StatusOr<Snapshot> view = cluster_->GetSnapshot();
  ASSERT_THAT(view, IsOk());
  for (const std::string name : {"first", "second"}) {
    size_t acks = 0;
    for (int i = 0; i < kRows; ++i) {
      const std::string row = StrCat("d", i);
      const size_t changes = Records(row, "contents");
      const size_t of_row = Records(row, AckColumn("contents", name));
      EXPECT_LE(of_row, changes);
      EXPECT_EQ(view->Get({"docs", row, "by_" + name}).value(), std::to_string(of_row));
      acks += of_row;
    }
    int64_t commits = 0;
    for (const auto& worker : workers_) {
      for (const ObserverMetrics& metrics : worker->metrics()) {
        if (metrics.name == name) commits += metrics.commits;
      }
    }
    EXPECT_EQ(static_cast<size_t>(commits), acks);
  }
  EXPECT_THAT(Audit(store_.get()), IsEmpty());
  EXPECT_EQ(cluster_->CountNotifications().value().cells, 0U);
}

}  // namespace
}  // namespace percolator
