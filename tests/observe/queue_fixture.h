// What the tests of CombineQueue and ExportQueue have in common.

#ifndef PERCOLATOR_TESTS_OBSERVE_QUEUE_FIXTURE_H_
#define PERCOLATOR_TESTS_OBSERVE_QUEUE_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "src/observe/journal.h"
#include "tests/testing/status_matchers.h"

namespace percolator {

// A cluster in memory, with one of both ways to commit.
class QueueTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr Duration kLong = std::chrono::seconds(300);

  QueueTest() {
    ClusterOptions options;
    options.commit_in_one_step = GetParam();
    options.gc_period = Duration(0);
    cluster_ = Cluster::Open("memory:", options).value();
  }

  // One that is quick to try again.
  std::unique_ptr<Worker> StartWorker(std::vector<ObserverSpec> observers) {
    WorkerOptions options;
    options.scan_period = std::chrono::milliseconds(50);
    options.first_retry = std::chrono::microseconds(100);
    options.last_retry = std::chrono::milliseconds(1);
    auto worker = std::make_unique<Worker>(cluster_.get(), options);
    for (ObserverSpec& observer : observers) worker->Observe(std::move(observer));
    EXPECT_THAT(worker->Start(), IsOk());
    return worker;
  }

  // Adds to a queue in a transaction of its own; returns its start timestamp.
  template <typename Queue>
  Timestamp Add(const Queue& queue, const std::string& key, const std::string& payload) {
    Timestamp start_ts;
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) {
      absl::Status status = queue.Add(t, key, payload);
      start_ts = t.timestamp();
      return status;
    }),
                IsOk());
    return start_ts;
  }

  // What the observer of the journal is told of the epoch of `ts`, in shard 0.
  static Notification EpochOf(Timestamp ts, const std::string& table, const std::string& column) {
    return {{table, "n/00000000/" + Hex(ts.value() & ~uint64_t{0xfffff}), column}, ts};
  }

  std::unique_ptr<Cluster> cluster_;
};

inline std::string CommitName(const ::testing::TestParamInfo<bool>& one_step) {
  return one_step.param ? "one_step" : "two_phases";
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_OBSERVE_QUEUE_FIXTURE_H_
