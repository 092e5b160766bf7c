// SPDX-License-Identifier: Apache-2.0

// Loader: on a cluster, with threads; and in virtual time (tests/harness/virtual_runtime.h), on a cluster and on functions
// that replace one. In virtual time one task runs at a time, so nothing is guarded there.

#include "percolator/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "percolator/transaction.h"
#include "src/recipes/loader_core.h"
#include "tests/harness/test_oracle.h"
#include "tests/harness/virtual_runtime.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Loader::Function Put(int i) {
  return [i](ReadWrite& t) {
    t.Set({"documents", "row" + std::to_string(i), "contents"}, "x");
    return absl::OkStatus();
  };
}
// Writes three cells.
auto PutThree(int i) {
  return [i](ReadWrite& t) {
    for (const char* end : {"a", "b", "c"}) t.Set({"documents", std::to_string(i) + end, "contents"}, "x");
  };
}

size_t RowsOf(const Cluster& cluster) {
  size_t count = 0;
  for (const absl::StatusOr<ScannedRow>& row : cluster.GetSnapshot()->Scan("documents")) {
    EXPECT_THAT(row, IsOk());
    ++count;
  }
  return count;
}

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() : cluster_(Cluster::Open("memory:").value()) { EXPECT_THAT(cluster_.CreateTable("documents"), IsOk()); }

  size_t Rows() { return RowsOf(cluster_); }

  const Cluster cluster_;
};

class LoaderInVirtualTimeTest : public ::testing::Test {
 protected:
  LoaderInVirtualTimeTest()
      : cluster_(Assemble({.store = NewMemoryStore(),
                           .oracle = Borrow(&oracle_),
                           .coordinator = NewLocalCoordinator(&session_ids_),
                           .runtime = Borrow(&runtime_)})
                     .value()) {
    EXPECT_THAT(cluster_.CreateTable("documents"), IsOk());
  }

  // Lets time pass until the condition is true. Returns false if that takes longer than a minute.
  bool Becomes(const std::function<bool()>& condition) {
    const Duration end = runtime_.Elapsed() + std::chrono::minutes(1);
    for (runtime_.LetOthersRun(); !condition(); runtime_.Sleep(milliseconds(1))) {
      if (runtime_.Elapsed() >= end) return false;
    }
    return true;
  }
  size_t Rows() { return RowsOf(cluster_); }
  size_t Waiting() { return cluster_.CountNotifications().value().cells; }

  VirtualRuntime runtime_;
  TestOracle oracle_{1, &runtime_};
  TestOracle session_ids_;
  const Cluster cluster_;
};

TEST_F(LoaderTest, RunsAllFunctions) {
  Loader loader(cluster_, {.threads = 4, .max_queued = 10, .expected = 500});
  for (int i = 0; i < 500; ++i) loader.Add(Put(i));
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(Rows(), 500U);
  EXPECT_EQ(loader.progress().done, 500U);
  EXPECT_EQ(loader.progress().failed, 0U);
  EXPECT_THAT(loader.Finish(), IsOk());
}

TEST_F(LoaderTest, ALoaderWithoutFunctionsFinishes) {
  Loader loader(cluster_);
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(loader.progress().done, 0U);
}

TEST_F(LoaderTest, RunsAgainOnAConflict) {
  Loader loader(cluster_);
  for (int i = 0; i < 200; ++i) {
    loader.Add([](ReadWrite& t) -> absl::Status {
      const auto count = t.Get({"documents", "counter", "n"});
      if (!count.ok()) return count.status();
      t.Set({"documents", "counter", "n"}, std::to_string(std::stoi(count->value_or("0")) + 1));
      return absl::OkStatus();
    });
  }
  ASSERT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(cluster_.GetSnapshot()->Get({"documents", "counter", "n"}).value(), "200");
}

TEST_F(LoaderTest, AnErrorDoesNotStopTheOthers) {
  Loader loader(cluster_, {.threads = 1});  // one thread, so in order
  loader.Add(Put(1));
  loader.Add([](ReadWrite&) { return absl::NotFoundError("the file is gone"); });
  loader.Add([](ReadWrite&) { return absl::InternalError("another"); });
  loader.Add([](ReadWrite&) -> absl::Status { throw std::runtime_error("thrown"); });
  loader.Add(Loader::Function(nullptr));
  loader.Add(Put(2));
  const absl::Status status = loader.Finish();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the file is gone"));
  EXPECT_EQ(Rows(), 2U);
  EXPECT_EQ(loader.progress().done, 6U);
  EXPECT_EQ(loader.progress().failed, 4U);
}

TEST_F(LoaderTest, AnExceptionIsAnError) {
  for (const bool is_exception : {true, false}) {
    Loader loader(cluster_);
    loader.Add([=](ReadWrite&) -> absl::Status {
      if (is_exception) throw std::runtime_error("thrown");
      throw 7;
    });
    EXPECT_THAT(loader.Finish(), StatusIs(absl::StatusCode::kInternal));
  }
}

TEST_F(LoaderInVirtualTimeTest, AnExceptionOfOnProgressIsAnError) {
  Loader loader(cluster_, {.on_progress = [](const LoadProgress&) { throw std::runtime_error("on_progress"); }});
  loader.Add(Put(0));
  runtime_.Sleep(milliseconds(1100));  // so that the loader's own task calls it too
  EXPECT_THAT(loader.Finish(), StatusIs(absl::StatusCode::kInternal, HasSubstr("on_progress")));
}

TEST_F(LoaderTest, TheDestructorWaitsForAllFunctions) {
  {
    Loader loader(cluster_, {.threads = 2});
    for (int i = 0; i < 100; ++i) loader.Add(Put(i));
  }
  EXPECT_EQ(Rows(), 100U);
}

TEST_F(LoaderTest, InvalidOptionsAreRefused) {
  const auto expect = [&](const LoaderOptions& options, const std::string& name) {
    Loader loader(cluster_, options);
    loader.Add(Put(1));
    const absl::Status status = loader.Finish();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(loader.progress().failed, 1U);
  };
  expect({.threads = 0}, "threads");
  expect({.max_queued = 0}, "queue");
  expect({.max_backlog_age = Duration(-1)}, "max_backlog_age");
  expect({.transaction = {.max_attempts = 0}}, "max_attempts");
  EXPECT_EQ(Rows(), 0U);
}

TEST_F(LoaderTest, AnInspectorOfAClosedClusterFails) {
  ASSERT_THAT(cluster_.Close(), IsOk());
  Loader loader(cluster_);
  loader.Add(Put(1));
  EXPECT_THAT(loader.Finish(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// The limit holds at every moment, except for transactions in progress: three cells in each thread.
TEST_F(LoaderInVirtualTimeTest, ObserversThatFallBehindDelayLoading) {
  Worker worker(cluster_);
  worker.Observe(
      {.name = "observer", .table = "documents", .column = "contents", .run = [](ReadWrite&, const Notification&) {}});
  ASSERT_THAT(worker.Start(), IsOk());
  worker.Pause();
  constexpr int kThreads = 4;
  constexpr size_t kMax = 60;
  Loader loader(cluster_,
                {.threads = kThreads, .max_queued = 1000, .max_backlog = kMax, .max_backlog_age = Duration(0)});
  for (int i = 0; i < 300; ++i) loader.Add(PutThree(i));
  ASSERT_TRUE(Becomes([&] { return loader.progress().throttled; }));
  for (int i = 0; i < 40; ++i) {
    ASSERT_LE(Waiting(), kMax + kThreads * 3);
    runtime_.Sleep(milliseconds(5));
  }
  EXPECT_GT(Waiting(), kMax);
  EXPECT_LT(loader.progress().done, 300U);
  EXPECT_THAT(ToString(loader.progress()), HasSubstr("waiting for observers"));
  worker.Resume();
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(Rows(), 900U);
  EXPECT_FALSE(loader.progress().throttled);
  EXPECT_THAT(worker.WaitUntilIdle(std::chrono::seconds(120)), IsOk());
}

TEST_F(LoaderInVirtualTimeTest, AnOldNotificationDelaysLoading) {
  Worker worker(cluster_);
  worker.Observe(
      {.name = "observer", .table = "documents", .column = "contents", .run = [](ReadWrite&, const Notification&) {}});
  ASSERT_THAT(worker.Start(), IsOk());
  for (const size_t bound : {size_t{0}, SIZE_MAX}) {  // SIZE_MAX + 1 would overflow
    worker.Pause();
    ASSERT_THAT(cluster_.Transact(Put(0)), IsOk());
    runtime_.Sleep(milliseconds(30));
    Loader loader(cluster_, {.max_backlog = bound, .max_backlog_age = milliseconds(20), .max_stuck_cells = 0});
    loader.Add(Put(1));
    ASSERT_TRUE(Becomes([&] { return loader.progress().throttled; }));
    EXPECT_EQ(loader.progress().done, 0U);
    worker.Resume();
    EXPECT_THAT(loader.Finish(), IsOk());
    EXPECT_EQ(loader.progress().done, 1U);
  }
}

// N11: an observer that keeps failing for a cell, or an outside system that is away, does not stop loading.
TEST_F(LoaderInVirtualTimeTest, AFewOldNotificationsDoNotDelayLoading) {
  Worker worker(cluster_);
  worker.Observe(
      {.name = "observer", .table = "documents", .column = "contents", .run = [](ReadWrite&, const Notification&) {
         return absl::UnavailableError("away");
       }});
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(cluster_.Transact(Put(0)), IsOk());
  runtime_.Sleep(milliseconds(30));
  Loader loader(cluster_, {.max_backlog = 0, .max_backlog_age = milliseconds(20), .max_stuck_cells = 2});
  loader.Add(Put(1));
  EXPECT_THAT(loader.Finish(), IsOk());
}

// --- With functions instead of a cluster

Loader::Function Any() {
  return [](ReadWrite&) { return absl::OkStatus(); };
}

class LoaderCallbacksTest : public ::testing::Test {
 protected:
  LoaderCallbacks CallbacksOf(std::function<absl::Status()> transact,
                              std::function<absl::StatusOr<Backlog>(size_t)> backlog) {
    return {&runtime_,
            [transact](const Loader::Function&, const TransactionOptions&, size_t* marks) {
              *marks = 1;
              return transact();
            },
            std::move(backlog), [] { return absl::OkStatus(); }};
  }

  VirtualRuntime runtime_;
};

TEST_F(LoaderCallbacksTest, AddWaitsForRoom) {
  const std::unique_ptr<Event> go = runtime_.NewEvent();
  LoaderCore loader(CallbacksOf(
                        [&] {
                          go->Wait();
                          return absl::OkStatus();
                        },
                        [](size_t) { return Backlog{}; }),
                    {.threads = 1, .max_queued = 1});
  int added = 0;
  runtime_.Start([&] {
    for (int i = 0; i < 3; ++i) {
      loader.Add(Any());
      ++added;
    }
  });
  runtime_.Sleep(milliseconds(30));
  EXPECT_EQ(added, 2);  // one runs, one waits
  go->Set();
  runtime_.Sleep(milliseconds(1));
  EXPECT_EQ(added, 3);
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(loader.progress().done, 3U);
}

TEST_F(LoaderCallbacksTest, ATransientErrorOfTheBacklogIsTriedAgain) {
  int looks = 0;
  LoaderCore loader(CallbacksOf([] { return absl::OkStatus(); },
                                [&](size_t) -> absl::StatusOr<Backlog> {
                                  if (++looks < 3) return absl::UnavailableError("away");
                                  return Backlog{};
                                }),
                    {});
  loader.Add(Any());
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_GE(looks, 3);
}

TEST_F(LoaderCallbacksTest, FinishReturnsALastingErrorOfTheBacklog) {
  LoaderCore loader(CallbacksOf([] { return absl::OkStatus(); },
                                [](size_t) -> absl::StatusOr<Backlog> { return absl::DataLossError("spoilt"); }),
                    {});
  for (int i = 0; i < 10; ++i) loader.Add(Any());
  EXPECT_THAT(loader.Finish(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(loader.progress().done, 10U);
}

TEST_F(LoaderCallbacksTest, WithoutLimitsTheBacklogIsNotRead) {
  int looks = 0;
  LoaderCore loader(CallbacksOf([] { return absl::OkStatus(); },
                                [&](size_t) {
                                  ++looks;
                                  return Backlog{};
                                }),
                    {.max_backlog = 0, .max_backlog_age = Duration(0)});
  for (int i = 0; i < 10; ++i) loader.Add(Any());
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(looks, 0);
}

TEST_F(LoaderCallbacksTest, CountsUpToOneMoreThanTheLimit) {
  size_t most = 0;
  LoaderCore loader(CallbacksOf([] { return absl::OkStatus(); },
                                [&](size_t asked) {
                                  most = asked;
                                  return Backlog{};
                                }),
                    {.max_backlog = 7});
  loader.Add(Any());
  EXPECT_THAT(loader.Finish(), IsOk());
  EXPECT_EQ(most, 8U);
}

TEST_F(LoaderCallbacksTest, ReportsProgress) {
  int inside = 0;
  std::vector<LoadProgress> reports;
  LoaderOptions options{.threads = 1, .expected = 4};
  options.on_progress = [&](const LoadProgress& progress) {
    EXPECT_EQ(++inside, 1);
    if (progress.done >= 2) reports.push_back(progress);
    --inside;
  };
  int runs = 0;
  LoaderCore loader(CallbacksOf(
                        [&] {
                          if (++runs > 2 && reports.empty()) runtime_.Sleep(std::chrono::seconds(2));
                          return absl::OkStatus();
                        },
                        [](size_t) {
                          return Backlog{5, {}};
                        }),
                    options);
  for (int i = 0; i < 4; ++i) loader.Add(Any());
  EXPECT_THAT(loader.Finish(), IsOk());
  ASSERT_GE(reports.size(), 2U);
  EXPECT_EQ(reports.front().done, 2U);
  EXPECT_GT(reports.front().per_second, 0);
  EXPECT_GT(reports.front().remaining, Duration(0));
  EXPECT_EQ(reports.front().backlog, 5U);
  EXPECT_EQ(reports.back().done, 4U);
  EXPECT_EQ(reports.back().remaining, Duration(0));
}

TEST(LoadProgressTest, AsText) {
  LoadProgress progress{.done = 12'000,
                        .expected = 50'000,
                        .per_second = 3400.4,
                        .remaining = std::chrono::milliseconds(10'500),
                        .backlog = 250};
  EXPECT_EQ(ToString(progress), "12,000 of 50,000 (24 %), 3,400/s, 11 s left, backlog 250");
  progress.failed = 3;
  progress.throttled = true;
  progress.remaining = std::chrono::minutes(5);
  EXPECT_EQ(ToString(progress),
            "12,000 of 50,000 (24 %), 3,400/s, 5 min left, backlog 250, 3 failed, waiting for observers");
  progress.remaining = std::chrono::hours(30);
  EXPECT_THAT(ToString(progress), HasSubstr(", 30 h left"));
  EXPECT_EQ(ToString(LoadProgress{.done = 1'234'567}), "1,234,567, 0/s, backlog 0");
}

}  // namespace
}  // namespace percolator
