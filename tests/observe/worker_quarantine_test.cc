// SPDX-License-Identifier: Apache-2.0

// Observers that fail, throw, or form cycles: others continue, and nothing is lost (N11).

#include <atomic>
#include <stdexcept>
#include <vector>

#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class WorkerQuarantineTest : public WorkerFixture {
 protected:
  // Fails for rows whose name begins with "bad", while `broken_`.
  ObserverFunction Fragile() {
    return [this](ReadWrite& t, const Notification& n) -> absl::Status {
      if (broken_ && n.cell.row.starts_with("bad")) return absl::InternalError("does not parse");
      return CopyTo("parsed")(t, n);
    };
  }
  std::atomic<bool> broken_ = true;
};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerQuarantineTest, kClusterKinds, KindName);

TEST_P(WorkerQuarantineTest, AFailingObserverIsSetAsideWhileOthersContinue) {
  Worker worker(*cluster_, Options());
  ObserverSpec fragile = Spec("fragile", "contents", Fragile());
  fragile.max_attempts = 3;
  worker.Observe(fragile);
  worker.Observe(Spec("other", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  for (const char* row : {"bad1", "bad2", "good1", "good2"}) Set(row, "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  for (const char* row : {"bad1", "bad2", "good1", "good2"}) EXPECT_EQ(Get(row, "copied"), "v");
  EXPECT_EQ(Get("good1", "parsed"), "v");
  EXPECT_EQ(Get("bad1", "parsed"), "-");
  EXPECT_EQ(MetricsOf(worker, "fragile").failures, 6);
  EXPECT_EQ(MetricsOf(worker, "fragile").quarantined, 2);
  EXPECT_EQ(MetricsOf(worker, "other").failures, 0);

  const absl::StatusOr<std::vector<Quarantined>> list = worker.ListQuarantine();
  ASSERT_THAT(list, IsOk());
  ASSERT_THAT(*list, SizeIs(2));
  EXPECT_EQ((*list)[0].observer, "fragile");
  EXPECT_EQ((*list)[0].cell, (CellName{"docs", "bad1", "contents"}));
  EXPECT_EQ((*list)[0].attempts, 3);
  EXPECT_THAT((*list)[0].error, HasSubstr("does not parse"));

  broken_ = false;
  ASSERT_THAT(worker.Replay((*list)[0]), IsOk());
  ASSERT_THAT(worker.Drop((*list)[1]), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("bad1", "parsed"), "v");
  EXPECT_EQ(Get("bad2", "parsed"), "-");
  EXPECT_THAT(*worker.ListQuarantine(), SizeIs(0));
  EXPECT_THAT(worker.Replay((*list)[0]), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(worker.Drop((*list)[1]), StatusIs(absl::StatusCode::kNotFound));
  // The next change is observed as usual.
  Set("bad2", "contents", "w");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("bad2", "parsed"), "w");
  EXPECT_EQ(MetricsOf(worker, "other").commits, 5);
}

TEST_P(WorkerQuarantineTest, AnObserverThatRecoversIsNotSetAside) {
  std::atomic<int> failures = 5;
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("flaky", "contents", [&](ReadWrite& t, const Notification& n) {
    return failures-- > 0 ? absl::InternalError("not yet") : CopyTo("copied")(t, n);
  }));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "v");
  EXPECT_EQ(MetricsOf(worker, "flaky").failures, 5);
  EXPECT_EQ(MetricsOf(worker, "flaky").runs, 6);
  EXPECT_THAT(*worker.ListQuarantine(), SizeIs(0));
}

TEST_P(WorkerQuarantineTest, AnObserverThatThrowsHasFailed) {
  Worker worker(*cluster_, Options());
  ObserverSpec throws = Spec("throws", "contents", [](ReadWrite& /*t*/, const Notification& n) -> absl::Status {
    if (n.cell.row == "odd") throw 7;
    throw std::runtime_error("out of cheese");
  });
  throws.max_attempts = 2;
  worker.Observe(throws);
  worker.Observe(Spec("other", "contents", CopyTo("copied")));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "contents", "v");
  Set("odd", "contents", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "v");
  EXPECT_EQ(Get("odd", "copied"), "v");
  const std::vector<Quarantined> list = *worker.ListQuarantine();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_THAT(list[0].error, HasSubstr("out of cheese"));
}

TEST_P(WorkerQuarantineTest, AWeakObserverCanBeSetAsideAndReplayed) {
  Worker worker(*cluster_, Options());
  ObserverSpec weak = Spec("weak", "touched", [this](ReadWrite& t, const Notification& n) {
    t.Set({"docs", n.cell.row, "seen"}, "yes");
    return broken_ ? absl::InternalError("no") : absl::OkStatus();
  });
  weak.kind = NotificationKind::kWeak;
  weak.max_attempts = 2;
  worker.Observe(weak);
  ASSERT_THAT(worker.Start(), IsOk());
  Notify("d");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  const std::vector<Quarantined> list = *worker.ListQuarantine();
  ASSERT_THAT(list, SizeIs(1));
  broken_ = false;
  ASSERT_THAT(worker.Replay(list[0]), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "seen"), "yes");
}

TEST_P(WorkerQuarantineTest, ACycleIsBroken) {
  WorkerOptions options = Options();
  options.max_chain = 20;
  Worker worker(*cluster_, options);
  worker.Observe(Spec("ping", "a", CountIn("b")));
  worker.Observe(Spec("pong", "b", CountIn("a")));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "a", "0");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  const ObserverMetrics ping = MetricsOf(worker, "ping");
  const ObserverMetrics pong = MetricsOf(worker, "pong");
  EXPECT_EQ(ping.cycles + pong.cycles, 1);
  EXPECT_EQ(ping.commits + pong.commits, 21);
  EXPECT_THAT(*worker.ListQuarantine(), SizeIs(1));
  // A new change begins a new chain.
  Set("d", "a", "0");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_GT(MetricsOf(worker, "ping").commits, ping.commits);
}

// Both entries are in one row of the system table. One transaction conflicts, and is run again.
TEST_P(WorkerQuarantineTest, OnlyOneOfTwoReplaysOfAnEntrySucceeds) {
  Worker worker(*cluster_, Options());
  ObserverSpec spec = Spec("copy", "c", [this](ReadWrite& t, const Notification& n) {
    return broken_ ? absl::InternalError("no") : CopyTo("copied")(t, n);
  });
  spec.max_attempts = 1;
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "c", "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  const std::vector<Quarantined> list = *worker.ListQuarantine();
  ASSERT_THAT(list, SizeIs(1));
  broken_ = false;
  absl::Status one;
  absl::Status two;
  std::thread other([&] { one = worker.Replay(list[0]); });
  two = worker.Replay(list[0]);
  other.join();
  EXPECT_EQ(one.ok() + two.ok(), 1) << one << " " << two;
  EXPECT_THAT(one.ok() ? two : one, StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "copied"), "v");
}

// An observer that works off a queue in small portions notifies itself until the queue is empty.
TEST_P(WorkerQuarantineTest, ANotificationOfItselfIsNotACycle) {
  WorkerOptions options = Options();
  options.max_chain = 3;
  Worker worker(*cluster_, options);
  ObserverSpec weak = Spec("weak", "touched", [](ReadWrite& t, const Notification& n) -> absl::Status {
    const auto left = t.Get({"docs", n.cell.row, "left"});
    if (!left.ok()) return left.status();
    const int count = std::stoi(left->value_or("0"));
    if (count == 0) return absl::OkStatus();
    t.Notify({"docs", n.cell.row, "touched"});
    t.Set({"docs", n.cell.row, "left"}, std::to_string(count - 1));
    return absl::OkStatus();
  });
  weak.kind = NotificationKind::kWeak;
  worker.Observe(weak);
  ASSERT_THAT(worker.Start(), IsOk());
  Set("d", "left", "20");
  Notify("d");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("d", "left"), "0");
  EXPECT_EQ(MetricsOf(worker, "weak").cycles, 0);
}

// Regression: the entry of a cell with a long name did not fit into the name of a column, so it was never written, and
// the observer failed forever.
TEST_P(WorkerQuarantineTest, CellsWithLongNamesCanBeSetAside) {
  const std::string row(4096, '\0');
  const std::string column = "c" + std::string(4000, '\0');
  Worker worker(*cluster_, Options());
  ObserverSpec spec = Spec("o", column, [this](ReadWrite& /*t*/, const Notification& /*n*/) {
    return broken_ ? absl::InternalError("broken") : absl::OkStatus();
  });
  spec.max_attempts = 1;
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Set(row, column, "v");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  const auto entries = worker.ListQuarantine();
  ASSERT_THAT(entries, IsOkAndHolds(SizeIs(1)));
  EXPECT_EQ(entries->front().cell, (CellName{"docs", row, column}));
  broken_ = false;
  EXPECT_THAT(worker.Replay(entries->front()), IsOk());
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker.ListQuarantine(), IsOkAndHolds(SizeIs(0)));
}

// Regression: an entry whose column is no longer observed was removed from quarantine, and no observer ever ran.
TEST_P(WorkerQuarantineTest, AReplayWithoutAnObserverKeepsTheEntry) {
  Worker former(*cluster_, Options());
  ObserverSpec spec = Spec("former", "c", Fail);
  spec.max_attempts = 1;
  former.Observe(spec);
  ASSERT_THAT(former.Start(), IsOk());
  Set("r", "c", "v");
  ASSERT_THAT(former.WaitUntilIdle(kLong), IsOk());
  const auto entries = former.ListQuarantine();
  ASSERT_THAT(entries, IsOkAndHolds(SizeIs(1)));
  Worker other(*cluster_, Options());
  other.Observe(Spec("other", "d", Fail));
  ASSERT_THAT(other.Start(), IsOk());
  EXPECT_THAT(former.Replay(entries->front()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(former.ListQuarantine(), IsOkAndHolds(SizeIs(1)));
}

// N1. Regression: a change made while the last attempt ran was acknowledged with it, although no attempt had seen it.
TEST_P(WorkerQuarantineTest, AChangeDuringTheLastAttemptIsNotSetAside) {
  std::atomic<bool> interfered = false;
  Worker worker(*cluster_, Options());
  ObserverSpec spec = Spec("parse", "in", [&](ReadWrite& t, const Notification& n) -> absl::Status {
    const auto value = t.Get(n.cell);
    if (!value.ok()) return value.status();
    if (!interfered.exchange(true)) Set("r", "in", "good");
    if (*value == "bad") return absl::InternalError("does not parse");
    t.Set({"docs", n.cell.row, "out"}, value->value_or("-"));
    return absl::OkStatus();
  });
  spec.max_attempts = 1;
  worker.Observe(std::move(spec));
  ASSERT_THAT(worker.Start(), IsOk());
  Set("r", "in", "bad");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get("r", "out"), "good");
  EXPECT_THAT(worker.ListQuarantine(), IsOkAndHolds(SizeIs(0)));
}

TEST_P(WorkerQuarantineTest, ANotificationDuringTheLastAttemptIsNotSetAside) {
  std::atomic<int> runs = 0;
  WorkerOptions options = Options();
  options.hints = false;  // they may be lost
  Worker worker(*cluster_, options);
  ObserverSpec spec = Spec("work", "touched", [&](ReadWrite& /*t*/, const Notification& /*n*/) -> absl::Status {
    if (runs++ > 0) return absl::OkStatus();
    Notify("r");
    return absl::InternalError("does not work");
  });
  spec.kind = NotificationKind::kWeak;
  spec.max_attempts = 1;
  worker.Observe(spec);
  ASSERT_THAT(worker.Start(), IsOk());
  Notify("r");
  ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace percolator
