// Bugs of workers, loaders and queues that were found by thinking, each with the shortest story that shows it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/loader.h"
#include "percolator/observer.h"
#include "percolator/spi/assemble.h"
#include "tests/harness/eventually.h"
#include "tests/harness/hooked_store.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// What takes longer never comes, however slow the machine.
constexpr Duration kLong = seconds(120);

class ObserverBugsTest : public ::testing::Test {
 protected:
  ObserverBugsTest() { EXPECT_THAT(cluster_.CreateTable("t"), IsOk()); }

  static WorkerOptions Quick() {
    WorkerOptions options;
    options.threads = 2;
    options.scan_period = milliseconds(20);
    options.min_retry_delay = milliseconds(1);
    options.max_retry_delay = milliseconds(2);
    return options;
  }
  static ObserverSpec Spec(const std::string& name, const std::string& column, ObserverFunction run) {
    return {.name = name, .table = "t", .column = column, .run = std::move(run)};
  }
  static ObserverFunction Count(std::atomic<int>* runs) {
    return [runs](ReadWrite& /*t*/, const Notification& /*n*/) { ++*runs; };
  }
  static absl::Status Fail(ReadWrite& /*t*/, const Notification& /*n*/) { return absl::InternalError("broken"); }

  void Set(const std::string& row, const std::string& column, const std::string& table = "t") {
    ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { t.Set({table, row, column}, "v"); }), IsOk());
  }
  size_t Backlogged() { return cluster_.CountNotifications().value().cells; }
  // Leaves a notification that no observer will ever take up.
  void LeaveMark() {
    Worker worker(cluster_, Quick());
    worker.Observe(Spec("former", "c", Fail));
    ASSERT_THAT(worker.Start(), IsOk());
    worker.Pause();
    Set("r", "c");
    EXPECT_THAT(worker.Stop(), IsOk());
    ASSERT_EQ(Backlogged(), 1u);
  }

  const std::unique_ptr<Store> memory_ = NewMemoryStore();
  HookedStore store_{Borrow(memory_.get())};
  TestOracle oracle_{36'000'000'000};
  const std::unique_ptr<Coordinator> coordinator_ = NewLocalCoordinator(&oracle_);
  const Cluster cluster_ =
      Assemble({Borrow(&store_), Borrow(&oracle_), Borrow(coordinator_.get())}, {.gc_period = Duration(0)}).value();
};

// A worker without observers has no room for anything, and never looked: what removed observers had left stayed forever,
// and loaders waited for it.
TEST_F(ObserverBugsTest, WorkerWithoutObserversRemovesWhatOthersLeft) {
  LeaveMark();
  Worker worker(cluster_, Quick());
  ASSERT_THAT(worker.Start(), IsOk());
  EXPECT_TRUE(Eventually([&] { return Backlogged() == 0; }));
}

// Two workers that bring different observers start at once. Neither sees what the other writes; then the transactions knew
// the observers of one of them only, for half of a lease.
TEST_F(ObserverBugsTest, WorkersThatStartAtOnceKnowOfEachOther) {
  WorkerOptions options = Quick();
  options.add_only = true;
  std::atomic<int> first_runs = 0;
  std::atomic<int> second_runs = 0;
  Worker first(cluster_, options);
  Worker second(cluster_, options);
  first.Observe(Spec("first", "c", Count(&first_runs)));
  second.Observe(Spec("second", "d", Count(&second_runs)));
  store_.together = [&](const JointMutation& mutation, Oracle* oracle) {
    store_.together = nullptr;
    EXPECT_THAT(second.Start(), IsOk());
    return memory_->MutateTogether(mutation, oracle);
  };
  ASSERT_THAT(first.Start(), IsOk());
  Set("r", "c");
  Set("r", "d");
  EXPECT_TRUE(Eventually([&] { return first_runs == 1 && second_runs == 1; })) << first_runs << " " << second_runs;
}

// The entry of a cell with a long name did not fit into the name of a column: it was never put away, and failed forever.
TEST_F(ObserverBugsTest, CellsWithLongNamesCanBeQuarantined) {
  const std::string row(4096, '\0');
  const std::string column = "c" + std::string(4000, '\0');
  std::atomic<bool> broken = true;
  Worker worker(cluster_, Quick());
  ObserverSpec spec = Spec("o", column, [&](ReadWrite& /*t*/, const Notification& /*n*/) {
    return broken ? absl::InternalError("broken") : absl::OkStatus();
  });
  spec.max_attempts = 1;
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set(row, column);
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  const auto entries = worker.ListQuarantine();
  ASSERT_THAT(entries, IsOk());
  ASSERT_THAT(*entries, SizeIs(1));
  EXPECT_EQ(entries->front().cell, (CellName{"t", row, column}));
  broken = false;
  EXPECT_THAT(worker.Replay(entries->front()), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker.ListQuarantine().value(), SizeIs(0));
}

// The acknowledgement's column would be longer than the store takes, and no run could ever begin.
TEST_F(ObserverBugsTest, ColumnThatIsTooLongToBeObserved) {
  Worker worker(cluster_, Quick());
  worker.Observe(Spec("o", "c" + std::string(8191, '\0'), Fail));
  const absl::Status status = worker.Start();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

// kOutOfRange is what a snapshot that is too old says; here it is what the observer says, and it is a failure like any other.
TEST_F(ObserverBugsTest, OverflowInACombineQueueGoesToQuarantine) {
  const CombineQueue<int64_t> sums("sums", Sum);
  ASSERT_THAT(sums.EnsureTable(cluster_), IsOk());
  Worker worker(cluster_, Quick());
  sums.Attach(worker);
  ASSERT_THAT(worker.Start(), IsOk());
  const auto add = [&](int64_t delta) { return cluster_.Transact([&](ReadWrite& t) { sums.Add(t, "k", delta); }); };
  ASSERT_THAT(add(std::numeric_limits<int64_t>::max()), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  ASSERT_THAT(add(1), IsOk());
  EXPECT_TRUE(Eventually([&] { return worker.ListQuarantine().value().size() == 1; }));
}

// Units of a table that was dropped were tried again forever, and kept the room of others.
TEST_F(ObserverBugsTest, DroppedTableIsNotTriedForEver) {
  Worker worker(cluster_, Quick());
  ObserverSpec spec = Spec("o", "c", Fail);
  spec.max_attempts = std::numeric_limits<int>::max();
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c");
  ASSERT_TRUE(Eventually([&] { return worker.metrics()[0].failures > 0; }));
  ASSERT_THAT(cluster_.DropTable("t"), IsOk());
  EXPECT_TRUE(Eventually([&] { return worker.metrics()[0].pending == 0; }));
}

// An entry whose column nobody observes any more was taken out of quarantine, and nobody ever ran.
TEST_F(ObserverBugsTest, ReplayWithoutAnObserverKeepsTheEntry) {
  Worker former(cluster_, Quick());
  ObserverSpec spec = Spec("former", "c", Fail);
  spec.max_attempts = 1;
  former.Observe(spec);
  ASSERT_THAT(former.Start(), IsOk());
  Set("r", "c");
  ASSERT_THAT(former.WaitUntilIdle(kLong), IsOk());
  const auto entries = former.ListQuarantine();
  ASSERT_THAT(entries, IsOk());
  ASSERT_THAT(*entries, SizeIs(1));
  Worker other(cluster_, Quick());
  other.Observe(Spec("other", "d", Fail));
  ASSERT_THAT(other.Start(), IsOk());
  EXPECT_THAT(former.Replay(entries->front()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(former.ListQuarantine().value(), SizeIs(1));
}

// A cell that one of its observers had no room for rests for a scan period. Who waits for idleness does not.
TEST_F(ObserverBugsTest, WaitUntilIdleDoesNotRestForAScanPeriod) {
  WorkerOptions options = Quick();
  options.max_queued_cells = 4;
  options.scan_period = hours(1);
  std::atomic<int> slow_runs = 0;
  Worker worker(cluster_, options);
  std::atomic<int> quick_runs = 0;
  worker.Observe(Spec("quick", "c", Count(&quick_runs)));
  ObserverSpec slow = Spec("slow", "c", [&](ReadWrite& /*t*/, const Notification& /*n*/) {
    std::this_thread::sleep_for(milliseconds(5));
    ++slow_runs;
    return absl::OkStatus();
  });
  slow.max_concurrency = 1;
  worker.Observe(slow);
  ASSERT_THAT(worker.Start(), IsOk());
  constexpr int kRows = 20;
  for (int i = 0; i < kRows; ++i) Set("r" + std::to_string(i), "c");
  EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(slow_runs, kRows);
}

// N11. With a queue that is shorter than the list of observers, one that fails kept the only place.
TEST_F(ObserverBugsTest, EveryObserverHasAPlaceInAShortQueue) {
  WorkerOptions options = Quick();
  options.max_queued_cells = 1;
  options.min_retry_delay = options.max_retry_delay = hours(1);
  std::atomic<int> runs = 0;
  Worker worker(cluster_, options);
  worker.Observe(Spec("fails", "c", Fail));
  worker.Observe(Spec("works", "d", Count(&runs)));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c");
  ASSERT_TRUE(Eventually([&] { return worker.metrics()[0].failures > 0; }));
  Set("r", "d");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

// What is added to a time must not overflow it: a retry that is due in the past is a loop without a pause.
TEST_F(ObserverBugsTest, EndlessRetriesAreNotAtOnce) {
  WorkerOptions options = Quick();
  options.min_retry_delay = options.max_retry_delay = Duration::max();
  Worker worker(cluster_, options);
  ObserverSpec spec = Spec("o", "c", Fail);
  spec.max_attempts = std::numeric_limits<int>::max();
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "c");
  ASSERT_TRUE(Eventually([&] { return worker.metrics()[0].failures > 0; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(worker.metrics()[0].failures, 1);
}

TEST_F(ObserverBugsTest, CallbackThatThrowsEndsNothing) {
  std::atomic<int> runs = 0;
  WorkerOptions options = Quick();
  options.on_commit = [](std::string_view /*observer*/, const Notification& /*n*/, Timestamp /*commit_ts*/) {
    throw std::runtime_error("thrown by on_commit");
  };
  Worker worker(cluster_, options);
  worker.Observe(Spec("o", "c", Count(&runs)));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("1", "c");
  Set("2", "c");
  EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(runs, 2);

  Loader loader(cluster_, {.on_progress = [](const LoadProgress&) { throw std::runtime_error("on_progress"); }});
  loader.Add([](ReadWrite& t) { t.Set({"t", "3", "c"}, "v"); });
  std::this_thread::sleep_for(milliseconds(1100));  // so that the loader's own thread calls it, too
  const absl::Status status = loader.Finish();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(std::string(status.message()), HasSubstr("on_progress"));
}

// One more than the largest number is none.
TEST_F(ObserverBugsTest, LoaderWithTheLargestBacklogStillKnowsTheAge) {
  LeaveMark();
  std::this_thread::sleep_for(milliseconds(1));
  oracle_.Advance(1'000'000);
  Loader loader(cluster_, {.max_backlog = SIZE_MAX, .max_backlog_age = milliseconds(100), .max_stuck_cells = 0});
  loader.Add([](ReadWrite& t) { t.Set({"t", "r", "d"}, "v"); });
  EXPECT_TRUE(Eventually([&] { return loader.progress().throttled; }));
  EXPECT_EQ(loader.progress().done, 0u);
  Worker worker(cluster_, Quick());
  ASSERT_THAT(worker.Start(), IsOk());
  EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(loader.Finish(), IsOk());
}

// What is written there by mistake could keep the cluster from ever being opened again.
TEST_F(ObserverBugsTest, SystemTableIsNotTheUsers) {
  Worker worker(cluster_, Quick());
  ASSERT_THAT(worker.Start(), IsOk());
  const CellView cell{"_percolator", "observers", "x"};
  const auto expect_refused = [&](const std::function<void(ReadWrite & t)>& write) {
    Transaction t(cluster_);
    write(t);
    EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(t.Get({"t", "r", "c"}), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(t.Commit().status, StatusIs(absl::StatusCode::kInvalidArgument));
  };
  expect_refused([&](ReadWrite& t) { t.Set(cell, "y"); });
  expect_refused([&](ReadWrite& t) { t.Delete(cell); });
  expect_refused([&](ReadWrite& t) { t.Verify(cell); });
}

// A commit is under way when a worker starts: it was built when nobody observed the column, and is later than what Backfill
// sees.
TEST_F(ObserverBugsTest, CommitUnderWayWhenAWorkerStartsIsObserved) {
  std::atomic<int> runs = 0;
  Worker worker(cluster_, Quick());
  worker.Observe(Spec("late", "c", Count(&runs)));
  store_.together = [&](const JointMutation& mutation, Oracle* oracle) {
    store_.together = nullptr;
    EXPECT_THAT(worker.Start(), IsOk());
    EXPECT_THAT(worker.Backfill("late"), IsOk());
    EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
    return memory_->MutateTogether(mutation, oracle);
  };
  Set("r", "c");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

// N11. While a unit waits to be tried again its row stayed claimed, and a worker with other observers never got to it.
TEST_F(ObserverBugsTest, ObserverThatFailsDoesNotKeepTheRowFromOtherWorkers) {
  WorkerOptions options = Quick();
  options.min_retry_delay = options.max_retry_delay = hours(1);
  Worker failing(cluster_, options);
  failing.Observe(Spec("fails", "c", Fail));
  ASSERT_THAT(failing.Start(), IsOk());
  options.add_only = true;
  std::atomic<int> runs = 0;
  Worker working(cluster_, options);
  working.Observe(Spec("works", "d", Count(&runs)));
  ASSERT_THAT(working.Start(), IsOk());
  Set("r", "c");
  ASSERT_TRUE(Eventually([&] { return failing.metrics()[0].failures > 0; }));
  Set("r", "d");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

// The first delta of a key was not shown to the function, became the value, and spoiled all that came after it.
TEST_F(ObserverBugsTest, DeltaThatIsNoneIsNeverAValue) {
  const CombineQueue<int64_t> sums("sums", Sum);
  ASSERT_THAT(sums.EnsureTable(cluster_), IsOk());
  Worker worker(cluster_, Quick());
  sums.Attach(worker);
  ASSERT_THAT(worker.Start(), IsOk());
  // A process with another idea of the table's type.
  const CombineQueue<std::string> texts("sums", [](const std::string& a, const std::string& b) { return a + b; });
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { texts.Add(t, "k", "many"); }), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker.ListQuarantine().value(), SizeIs(1));
  absl::StatusOr<Snapshot> now = cluster_.GetSnapshot();
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(sums.Get(*now, "k").value(), std::nullopt);
}

// N1: what changed while the last attempt ran was acknowledged with it, though nobody had tried it.
TEST_F(ObserverBugsTest, AChangeDuringTheLastAttemptDoesNotGoToQuarantine) {
  const auto put = [&](const std::string& value) {
    ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { t.Set({"t", "r", "in"}, value); }), IsOk());
  };
  std::atomic<bool> interfered = false;
  Worker worker(cluster_, Quick());
  ObserverSpec spec = Spec("parse", "in", [&](ReadWrite& t, const Notification& n) -> absl::Status {
    const auto value = t.Get({"t", n.cell.row, "in"});
    if (!value.ok()) return value.status();
    if (!interfered.exchange(true)) put("good");
    if (*value == "bad") return absl::InternalError("does not parse");
    t.Set({"t", n.cell.row, "out"}, value->value_or("-"));
    return absl::OkStatus();
  });
  spec.max_attempts = 1;
  worker.Observe(std::move(spec));
  ASSERT_THAT(worker.Start(), IsOk());
  put("bad");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(*cluster_.GetSnapshot()->Get({"t", "r", "out"}), "good");
  EXPECT_THAT(*worker.ListQuarantine(), SizeIs(0));
}

TEST_F(ObserverBugsTest, ANotificationDuringTheLastAttemptDoesNotGoToQuarantine) {
  ASSERT_THAT(cluster_.CreateTable("weak", {.notify_only_columns = {"work"}}), IsOk());
  const auto notify = [&] {
    ASSERT_THAT(cluster_.Transact([](ReadWrite& t) { t.Notify({"weak", "r", "work"}); }), IsOk());
  };
  std::atomic<int> runs = 0;
  WorkerOptions options = Quick();
  options.hints = false;  // which may be lost
  Worker worker(cluster_, options);
  worker.Observe({.name = "work",
                  .table = "weak",
                  .column = "work",
                  .kind = NotificationKind::kWeak,
                  .run = [&](ReadWrite& /*t*/, const Notification& /*n*/) -> absl::Status {
                    if (runs++ > 0) return absl::OkStatus();
                    notify();
                    return absl::InternalError("does not work");
                  },
                  .max_attempts = 1});
  ASSERT_THAT(worker.Start(), IsOk());
  notify();
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace percolator
