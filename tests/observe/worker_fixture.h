// SPDX-License-Identifier: Apache-2.0

// A cluster with a table of documents, and helpers for tests of workers. Every test runs on each kind of cluster.

#ifndef PERCOLATOR_TESTS_OBSERVE_WORKER_FIXTURE_H_
#define PERCOLATOR_TESTS_OBSERVE_WORKER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "src/base/strings.h"
#include "tests/harness/eventually.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {

struct ClusterKind {
  std::string name;
  bool on_disk = false;
  bool one_step = true;
};

class WorkerFixture : public ::testing::TestWithParam<ClusterKind> {
 protected:
  static constexpr Duration kLong = std::chrono::seconds(300);

  void SetUp() override {
    ClusterOptions options;
    options.store.durability = Durability::kNoSync;
    options.one_step_commit = GetParam().one_step;
    options.gc_period = Duration(0);
    const std::string address = GetParam().on_disk ? "rocksdb:" + dir_.path() + "/store" : "memory:";
    absl::StatusOr<Cluster> cluster = Cluster::Open(address, options);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *cluster;
    ASSERT_THAT(cluster_->CreateTable("docs", {.notify_only_columns = {"touched"}}), IsOk());
  }

  static WorkerOptions Options() {
    WorkerOptions options;
    options.threads = 2;
    options.scan_period = std::chrono::milliseconds(50);
    options.min_retry_delay = std::chrono::milliseconds(1);
    options.max_retry_delay = std::chrono::milliseconds(5);
    return options;
  }

  static ObserverSpec Spec(const std::string& name, const std::string& column, ObserverFunction run) {
    return {.name = name, .table = "docs", .column = column, .run = std::move(run)};
  }
  // Counts the commits in `column` of the changed cell's row.
  static ObserverFunction CountIn(const std::string& column) {
    return [column](ReadWrite& t, const Notification& n) -> absl::Status {
      const auto old = t.Get({n.cell.table, n.cell.row, column});
      if (!old.ok()) return old.status();
      const int count = old->has_value() ? std::stoi(**old) : 0;
      t.Set({n.cell.table, n.cell.row, column}, std::to_string(count + 1));
      return absl::OkStatus();
    };
  }
  // Copies the changed cell to `column` of its row.
  static ObserverFunction CopyTo(const std::string& column) {
    return [column](ReadWrite& t, const Notification& n) -> absl::Status {
      const auto value = t.Get(n.cell);
      if (!value.ok()) return value.status();
      const CellName copy{n.cell.table, n.cell.row, column};
      value->has_value() ? t.Set(copy, **value) : t.Delete(copy);
      return absl::OkStatus();
    };
  }
  static ObserverFunction Count(std::atomic<int>* runs) {
    return [runs](ReadWrite& /*t*/, const Notification& /*n*/) { ++*runs; };
  }
  static absl::Status Fail(ReadWrite& /*t*/, const Notification& /*n*/) { return absl::InternalError("broken"); }
  static void Nothing(ReadWrite& /*t*/, const Notification& /*n*/) {}

  void Set(const std::string& row, const std::string& column, const std::string& value) {
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { t.Set({"docs", row, column}, value); }), IsOk());
  }
  void Delete(const std::string& row, const std::string& column) {
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { t.Delete({"docs", row, column}); }), IsOk());
  }
  void Notify(const std::string& row) {
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { t.Notify({"docs", row, "touched"}); }), IsOk());
  }
  // The value, or "-".
  std::string Get(const std::string& row, const std::string& column) {
    absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    const auto value = snapshot->Get({"docs", row, column});
    EXPECT_THAT(value, IsOk());
    return value.ok() ? value->value_or("-") : "?";
  }
  size_t Backlogged() {
    const absl::StatusOr<Backlog> backlog = cluster_->CountNotifications();
    EXPECT_THAT(backlog, IsOk());
    return backlog.ok() ? backlog->cells : 0;
  }
  static ObserverMetrics MetricsOf(const Worker& worker, const std::string& name) {
    for (ObserverMetrics& metrics : worker.metrics()) {
      if (metrics.name == name) return std::move(metrics);
    }
    ADD_FAILURE() << "no metrics of " << name;
    return {};
  }

  TempDir dir_;
  std::optional<Cluster> cluster_;
};

inline const auto kClusterKinds = ::testing::Values(  // NOLINT(cert-err58-cpp)
    ClusterKind{"memory"}, ClusterKind{.name = "memory_two_phases", .one_step = false},
    ClusterKind{.name = "rocksdb", .on_disk = true});
inline std::string KindName(const ::testing::TestParamInfo<ClusterKind>& info) { return info.param.name; }

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_OBSERVE_WORKER_FIXTURE_H_
