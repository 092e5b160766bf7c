// SPDX-License-Identifier: Apache-2.0

// The common fixture of the tests of CombineQueue and ExportQueue.

#ifndef PERCOLATOR_TESTS_RECIPES_QUEUE_FIXTURE_H_
#define PERCOLATOR_TESTS_RECIPES_QUEUE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "src/recipes/journal.h"
#include "tests/testing/status_matchers.h"

namespace percolator {

// A cluster in memory, for each of the two ways to commit.
class QueueTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr Duration kLong = std::chrono::seconds(300);

  QueueTest() : cluster_(Cluster::Open("memory:", Options()).value()) {}

  static ClusterOptions Options() {
    ClusterOptions options;
    options.one_step_commit = GetParam();
    options.gc_period = Duration(0);
    return options;
  }

  // Options of a worker that retries quickly.
  static WorkerOptions Quick() {
    WorkerOptions options;
    options.scan_period = std::chrono::milliseconds(50);
    options.min_retry_delay = std::chrono::microseconds(100);
    options.max_retry_delay = std::chrono::milliseconds(1);
    return options;
  }
  // Workers with these options may run an observer for the same cell at the same time.
  static WorkerOptions WithoutClaims() {
    WorkerOptions options = Quick();
    options.claims = false;
    return options;
  }
  std::unique_ptr<Worker> StartWorker(absl::FunctionRef<void(Worker& worker)> attach,
                                      const WorkerOptions& options = Quick()) {
    auto worker = std::make_unique<Worker>(cluster_, options);
    attach(*worker);
    EXPECT_THAT(worker->Start(), IsOk());
    return worker;
  }
  static ObserverMetrics MetricsOf(const Worker& worker, const std::string& observer) {
    for (const ObserverMetrics& metrics : worker.metrics()) {
      if (metrics.name == observer) return metrics;
    }
    ADD_FAILURE() << "no metrics of " << observer;
    return {};
  }

  // Adds to a queue in a transaction of its own; returns its start timestamp.
  template <typename Queue, typename Payload>
  Timestamp Add(const Queue& queue, const std::string& key, const Payload& payload) {
    Timestamp start_ts;
    EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) {
      queue.Add(t, key, payload);
      start_ts = t.timestamp();
    }),
                IsOk());
    return start_ts;
  }

  // Returns the cell that notifies the journal's observer of the epoch of `ts` in shard 0.
  static CellName EpochOf(Timestamp ts, const std::string& table, const std::string& column) {
    return {table, "n/00000000/" + Hex(ts.value() & ~uint64_t{0xfffff}), column};
  }

  Cluster cluster_;
};

inline std::string CommitName(const ::testing::TestParamInfo<bool>& one_step) {
  return one_step.param ? "one_step" : "two_phases";
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_RECIPES_QUEUE_FIXTURE_H_
