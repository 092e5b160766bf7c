// SPDX-License-Identifier: Apache-2.0

// Workers end to end: the changes that are observed, and idleness.

#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>
#include <vector>

#include "percolator/combine_queue.h"
#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class WorkerTest : public WorkerFixture {};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerTest, kClusterKinds, KindName);

TEST_P(WorkerTest, AChainOfTwo) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("parse", "contents", CopyTo("parsed")));
  worker.Observe(Spec("index", "parsed", CopyTo("indexed")));
  ASSERT_THAT(worker.Start(), IsOk());
  for (int i = 0; i < 20; ++i) Set(StrCat("d", i), "contents", StrCat("v", i));
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Get(StrCat("d", i), "indexed"), StrCat("v", i));
  EXPECT_EQ(Backlogged(), 0U);
  EXPECT_EQ(MetricsOf(worker, "parse").commits, 20);
  EXPECT_EQ(MetricsOf(worker, "index").commits, 20);
  EXPECT_EQ(MetricsOf(worker, "index").pending, 0);
  EXPECT_GT(MetricsOf(worker, "index").latency_p99.count(), 0);
  EXPECT_THAT(worker.DescribeGraph(), HasSubstr("parse observes docs:\"contents\"\n"
                                                "  changes docs:\"parsed\", observed by index\n"));
}

TEST_P(WorkerTest, SeveralObserversOfAColumn) {
  Worker worker(*cluster_, Options());
  for (const char* name : {"a", "b", "c"}) worker.Observe(Spec(name, "contents", CountIn(StrCat("count_", name))));
  ASSERT_THAT(worker.Start(), IsOk());
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 10; ++i) Set(StrCat("d", i), "contents", std::to_string(round));
    ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
    for (int i = 0; i < 10; ++i) {
      for (const char* name : {"a", "b", "c"}) {
        EXPECT_EQ(Get(StrCat("d", i), StrCat("count_", name)), std::to_string(round));
      }
    }
  }
  EXPECT_EQ(Backlogged(), 0U);
}

// N9
TEST_P(WorkerTest, WeakNotificationsAreObservedAndLeaveNothing) {
  std::atomic<int> runs = 0;
  Worker worker(*cluster_, Options());
  ObserverSpec weak = Spec("weak", "touched", [&](ReadWrite& t, const Notification& n) {
    ++runs;
    t.Set({"docs", n.cell.row, "seen"}, "yes");
  });
  weak.kind = NotificationKind::kWeak;
  worker.Observe(weak);
  ASSERT_THAT(worker.Start(), IsOk());
  for (int i = 0; i < 10; ++i) Notify(StrCat("d", i));
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Get(StrCat("d", i), "seen"), "yes");
  EXPECT_GE(runs, 10);
  const int before = runs;
  Notify("d0");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_GT(runs, before);
  EXPECT_EQ(Backlogged(), 0U);
}

TEST_P(WorkerTest, AnObserverThatIsAddedToAStartedWorkerHasNoEffect) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  worker.Observe(Spec("late", "contents", CopyTo("late")));
  Set("d", "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  ASSERT_THAT(worker.Stop(), IsOk());
  worker.Observe(Spec("later", "contents", CopyTo("late")));
  EXPECT_EQ(Get("d", "copied"), "v");
  EXPECT_EQ(worker.metrics().size(), 1U);
  EXPECT_EQ(worker.DescribeGraph(), "copy observes docs:\"contents\"\n");
}

TEST_P(WorkerTest, ADeletionIsAChange) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "v");
  Delete("d", "contents");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "-");
}

TEST_P(WorkerTest, AnObserverThatWritesItsOwnTriggerIsNotifiedAgain) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("down", "n", [](ReadWrite& t, const Notification& n) -> absl::Status {
    const auto value = t.Get({"docs", n.cell.row, "n"});
    if (!value.ok()) return value.status();
    const int left = std::stoi(value->value_or("0"));
    if (left > 0) t.Set({"docs", n.cell.row, "n"}, std::to_string(left - 1));
    return absl::OkStatus();
  }));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "n", "10");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "n"), "0");
  EXPECT_EQ(MetricsOf(worker, "down").commits, 11);
}

// N7
TEST_P(WorkerTest, ChangesCollapse) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  worker.Pause();
  for (int i = 0; i < 20; ++i) Set("d", "contents", std::to_string(i));
  worker.Resume();
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "19");
  EXPECT_EQ(MetricsOf(worker, "copy").commits, 1);
}

TEST_P(WorkerTest, ChangesWhileNoWorkerRunsAreSeenByTheNext) {
  {
    Worker worker(*cluster_, Options());
    worker.Observe(Spec("copy", "contents", CopyTo("copied")));
    ASSERT_THAT(worker.Start(), IsOk());
  }
  for (int i = 0; i < 100; ++i) Set(StrCat("d", i), "contents", "v");
  EXPECT_EQ(Backlogged(), 100U);
  EXPECT_EQ(cluster_->CountNotifications(7)->cells, 7U);
  EXPECT_GT(cluster_->CountNotifications()->oldest.count(), 0);
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(worker, "copy").commits, 100);
  EXPECT_EQ(Get("d99", "copied"), "v");
}

TEST_P(WorkerTest, ScansWithoutHintsFindEverything) {
  WorkerOptions options = Options();
  options.hints = false;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  for (int i = 0; i < 200; ++i) Set(StrCat("d", i), "contents", "v");
  // WaitUntilIdle would help the scan.
  EXPECT_TRUE(Eventually([&] { return MetricsOf(worker, "copy").commits == 200; }));
  EXPECT_TRUE(Eventually([&] { return Backlogged() == 0; }));
}

TEST_P(WorkerTest, HintsWithoutScansAreFast) {
  WorkerOptions options = Options();
  options.scanners = 0;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  for (int i = 0; i < 20; ++i) Set(StrCat("d", i), "contents", "v");
  EXPECT_TRUE(Eventually([&] { return MetricsOf(worker, "copy").commits == 20; }));
}

// The cell may still be locked when the hint arrives.
TEST_P(WorkerTest, HintsReachEveryRowOfATransaction) {
  WorkerOptions options = Options();
  options.scanners = 0;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  for (int round = 1; round <= 20; ++round) {
    const std::string value = std::to_string(round);
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) {
      for (const char* row : {"d1", "d2", "d3"}) t.Set({"docs", row, "contents"}, value);
    }),
                IsOk());
    for (const char* row : {"d1", "d2", "d3"}) {
      ASSERT_TRUE(Eventually([&] { return Get(row, "copied") == value; })) << row << " " << value;
    }
  }
}

TEST_P(WorkerTest, PauseAndResume) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  worker.Pause();
  Set("d", "contents", "v");
  const absl::Status waited = worker.WaitUntilIdle(milliseconds(100));
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(std::string(waited.message()), HasSubstr("row \"d\" of docs:\"contents\"; the worker is paused"));
  EXPECT_EQ(Get("d", "copied"), "-");
  worker.Resume();
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "v");
}

TEST_P(WorkerTest, StopFinishesRunningObserversAndDropsTheRest) {
  std::atomic<bool> go = false;
  std::atomic<int> begun = 0;
  WorkerOptions options = Options();
  options.threads = 1;
  const auto slow = [&](ReadWrite& t, const Notification& n) {
    ++begun;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
    t.Set({"docs", n.cell.row, "copied"}, "v");
  };
  {
    Worker worker(*cluster_, options);
    worker.Observe(Spec("copy", "contents", slow));
    ASSERT_THAT(worker.Start(), IsOk());
    for (int i = 0; i < 5; ++i) Set(StrCat("d", i), "contents", "v");
    const auto pending = [&] { return MetricsOf(worker, "copy").pending; };
    ASSERT_TRUE(Eventually([&] { return begun == 1 && pending() == 5; }));
    std::thread opener([&] {
      EXPECT_TRUE(Eventually([&] { return pending() == 1; }));  // the others are dropped
      go = true;
    });
    EXPECT_THAT(worker.Stop(), IsOk());
    opener.join();
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(MetricsOf(worker, "copy").commits, 1);
    EXPECT_THAT(worker.WaitUntilIdle(kLong), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(worker.Stop(), IsOk());
    EXPECT_THAT(worker.Start(), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_EQ(Backlogged(), 4U);
  Worker next(*cluster_, options);
  next.Observe(Spec("copy", "contents", slow));
  ASSERT_THAT(next.Start(), IsOk());
  ASSERT_THAT(next.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(begun, 5);
}

TEST_P(WorkerTest, IdleMeansThatNoObserverRuns) {
  std::atomic<int> ended = 0;
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("slow", "contents", [&](ReadWrite& t, const Notification& n) {
    std::this_thread::sleep_for(milliseconds(30));
    t.Set({"docs", n.cell.row, "middle"}, "v");
  }));
  worker.Observe(Spec("last", "middle", [&](ReadWrite& /*t*/, const Notification& /*n*/) {
    std::this_thread::sleep_for(milliseconds(30));
    ++ended;
  }));
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());  // no work at all
  Set("d", "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(ended, 1);
}

TEST_P(WorkerTest, BackfillMarksOldValuesOnce) {
  for (int i = 0; i < 1500; ++i) {
    if (i % 100 == 0) {
      ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) {
        for (int j = i; j < i + 100; ++j) t.Set({"docs", StrCat("d", j), "contents"}, "v");
        t.Set({"docs", StrCat("d", i), "other"}, "v");
      }),
                  IsOk());
    }
  }
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ObserverSpec weak = Spec("weak", "touched", Nothing);
  weak.kind = NotificationKind::kWeak;
  worker.Observe(weak);
  EXPECT_THAT(worker.Backfill("copy"), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(worker, "copy").runs, 0);
  ASSERT_THAT(worker.Backfill("copy"), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(worker, "copy").commits, 1500);
  ASSERT_THAT(worker.Backfill("copy"), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(worker, "copy").commits, 1500);
  EXPECT_THAT(worker.Backfill("nobody"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(worker.Backfill("weak"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(WorkerTest, TheMarksOfARemovedObserverAreRemoved) {
  ASSERT_THAT(cluster_->CreateTable("old"), IsOk());
  {
    Worker worker(*cluster_, Options());
    ObserverSpec old = Spec("old", "contents", CopyTo("copied"));
    old.table = "old";
    worker.Observe(old);
    worker.Observe(Spec("gone", "other", CopyTo("copied")));
    worker.Observe(Spec("stays", "contents", Nothing));
    ASSERT_THAT(worker.Start(), IsOk());
    EXPECT_THAT(worker.Stop(), IsOk());
    Set("d", "other", "v");
    ASSERT_THAT(cluster_->Transact([](ReadWrite& t) { t.Set({"old", "d", "contents"}, "v"); }), IsOk());
    EXPECT_EQ(Backlogged(), 2U);
  }
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("stays", "contents", Nothing));
  ASSERT_THAT(worker.Start(), IsOk());
  EXPECT_TRUE(Eventually([&] { return Backlogged() == 0; }));
  Set("d", "other", "w");  // no longer observed
  EXPECT_EQ(Backlogged(), 0U);
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "-");
}

// The cluster has the observers of both workers, and a mark stays until both have seen the change (N1).
TEST_P(WorkerTest, AddOnly) {
  Worker one(*cluster_, Options());
  one.Observe(Spec("one", "contents", CountIn("count_one")));
  ASSERT_THAT(one.Start(), IsOk());
  WorkerOptions add_only = Options();
  add_only.add_only = true;
  Worker two(*cluster_, add_only);
  two.Observe(Spec("two", "contents", CountIn("count_two")));
  ASSERT_THAT(two.Start(), IsOk());
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 10; ++i) Set(StrCat("d", i), "contents", std::to_string(round));
    ASSERT_THAT(two.WaitUntilIdle(kLong), IsOk());
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(Get(StrCat("d", i), "count_one"), std::to_string(round));
      EXPECT_EQ(Get(StrCat("d", i), "count_two"), std::to_string(round));
    }
  }
  EXPECT_THAT(two.DescribeGraph(), HasSubstr("one observes docs:\"contents\" (in other workers)"));
}

TEST_P(WorkerTest, AnObserverRunsAtOnceUpToItsLimit) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  WorkerOptions options = Options();
  options.threads = 4;
  Worker worker(*cluster_, options);
  ObserverSpec limited = Spec("limited", "contents", [&](ReadWrite& /*t*/, const Notification& /*n*/) {
    const int now = ++inside;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    EXPECT_TRUE(Eventually([&] { return most >= 2; }));
    std::this_thread::sleep_for(milliseconds(2));
    --inside;
  });
  limited.max_concurrency = 2;
  worker.Observe(limited);
  ASSERT_THAT(worker.Start(), IsOk());
  for (int i = 0; i < 40; ++i) Set(StrCat("d", i), "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(most, 2);
  EXPECT_EQ(MetricsOf(worker, "limited").commits, 40);
}

TEST_P(WorkerTest, AFullQueueLosesNothing) {
  WorkerOptions options = Options();
  options.max_queued_cells = 4;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("a", "contents", CopyTo("a")));
  worker.Observe(Spec("b", "contents", CopyTo("b")));
  ASSERT_THAT(worker.Start(), IsOk());
  ASSERT_THAT(cluster_->Transact([](ReadWrite& t) {
    for (int i = 0; i < 200; ++i) t.Set({"docs", StrCat("d", i), "contents"}, "v");
  }),
              IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(Get(StrCat("d", i), "a"), "v");
    EXPECT_EQ(Get(StrCat("d", i), "b"), "v");
  }
}

// The worker may be destroyed later: Stop is its last use of the cluster.
TEST_P(WorkerTest, TheClusterMayBeClosedAfterStop) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("copy", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d1", "contents", "a");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker.Stop(), IsOk());
  ASSERT_THAT(cluster_->Close(), IsOk());
}

TEST_P(WorkerTest, AnObserverWithoutAFunctionIsRefused) {
  constexpr Column<std::string> kContents("docs", "contents");
  using Function = absl::Status(ReadWrite&, const std::string&);
  const auto expect_refused = [&](const auto& observe) {
    Worker worker(*cluster_, Options());
    observe(worker);
    EXPECT_THAT(worker.Start(), StatusIs(absl::StatusCode::kInvalidArgument));
  };
  expect_refused([&](Worker& w) { w.Observe(kContents, "a", nullptr); });
  expect_refused([&](Worker& w) { w.Observe(kContents, "a", static_cast<Function*>(nullptr)); });
  expect_refused([&](Worker& w) { w.Observe(kContents, "a", std::function<Function>()); });
  expect_refused([&](Worker& w) { CombineQueue<int64_t>("docs", Sum).Observe(w, "a", nullptr); });
}

// A change is not lost if its observer fails to read and cannot report it.
TEST_P(WorkerTest, AnObserverThatReturnsNothingFailsIfAReadFails) {
  Worker worker(*cluster_, Options());
  worker.Observe({.name = "reads",
                  .table = "docs",
                  .column = "contents",
                  .run =
                      [](ReadWrite& t, const std::string&) {
                        t.Get({"missing", "r", "c"}).IgnoreError();
                      },
                  .max_attempts = 2});
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d1", "contents", "a");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(worker, "reads").commits, 0);
  EXPECT_EQ(MetricsOf(worker, "reads").quarantined, 1);
}

TEST_P(WorkerTest, BadRegistrationsAreRefused) {
  const auto start = [&](const ObserverSpec& spec) {
    Worker worker(*cluster_, Options());
    worker.Observe(spec);
    return worker.Start();
  };
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(start(Spec("", "c", Nothing)), invalid);
  EXPECT_THAT(start(Spec("a b", "c", Nothing)), invalid);
  EXPECT_THAT(start(Spec(std::string(65, 'a'), "c", Nothing)), invalid);
  EXPECT_THAT(start(Spec("a", "c", nullptr)), invalid);
  EXPECT_THAT(start(Spec("a", std::string("\0ack", 4), Nothing)), invalid);
  EXPECT_THAT(start(Spec("a", "touched", Nothing)), invalid);  // strong, on a column that cannot be written
  ObserverSpec spec = Spec("a", "c", Nothing);
  spec.kind = NotificationKind::kWeak;
  EXPECT_THAT(start(spec), invalid);
  spec = Spec("a", "c", Nothing);
  spec.max_attempts = 0;
  EXPECT_THAT(start(spec), invalid);
  spec = Spec("a", "c", Nothing);
  spec.table = "nowhere";
  EXPECT_THAT(start(spec), StatusIs(absl::StatusCode::kNotFound));
  Worker twice(*cluster_, Options());
  twice.Observe(Spec("a", "c", Nothing));
  twice.Observe(Spec("a", "d", Nothing));
  EXPECT_THAT(twice.Start(), invalid);
  WorkerOptions no_threads = Options();
  no_threads.threads = 0;
  EXPECT_THAT(Worker(*cluster_, no_threads).Start(), invalid);
  // None of them has registered an observer.
  Set("d", "c", "v");
  EXPECT_EQ(Backlogged(), 0U);
  EXPECT_THAT(start(Spec(std::string(64, 'a'), "c", Nothing)), IsOk());
}

TEST_P(WorkerTest, BeforeStartAWorkerIsNeverIdleAndCanBeStopped) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("a", "c", Nothing));
  EXPECT_THAT(worker.WaitUntilIdle(kLong), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(worker.metrics().empty());
  EXPECT_THAT(worker.DescribeGraph(), HasSubstr("a observes docs:\"c\""));
  worker.Pause();
  worker.Resume();
  EXPECT_THAT(worker.Stop(), IsOk());
}

}  // namespace
}  // namespace percolator
