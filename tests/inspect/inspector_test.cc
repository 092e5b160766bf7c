// SPDX-License-Identifier: Apache-2.0

// Inspector: the view of a cluster for its operators. percolator/inspect.h.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "percolator/inspect.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "tests/harness/test_oracle.h"
#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InspectorTest : public WorkerFixture {
 protected:
  void StartAndStop(ObserverSpec spec) {
    Worker worker(*cluster_, Options());
    worker.Observe(std::move(spec));
    ASSERT_THAT(worker.Start(), IsOk());
    EXPECT_THAT(worker.Stop(), IsOk());
  }
};
INSTANTIATE_TEST_SUITE_P(Clusters, InspectorTest, kClusterKinds, KindName);

TEST_P(InspectorTest, TablesAndObservers) {
  ASSERT_THAT(cluster_->CreateTable("plain"), IsOk());
  Inspector inspector(*cluster_);
  EXPECT_THAT(inspector.ListObservers().value(), IsEmpty());
  StartAndStop(Spec("parse", "contents", Nothing));
  EXPECT_THAT(inspector.ListObservers().value(),
              ElementsAre(ObserverInfo{"parse", "docs", "contents", NotificationKind::kStrong}));
  const std::vector<TableDescription> tables = inspector.ListTables().value();
  ASSERT_THAT(tables, SizeIs(2));  // without Percolator's own
  EXPECT_EQ(tables[0].name, "docs");
  EXPECT_THAT(tables[0].schema.notify_only_columns, ElementsAre("touched"));
  EXPECT_EQ(tables[1].name, "plain");
}

TEST_P(InspectorTest, CellsOfARowInWords) {
  {
    Worker worker(*cluster_, Options());
    worker.Observe(Spec("parse", "contents", Nothing));
    ASSERT_THAT(worker.Start(), IsOk());
    Set("d", "contents", "v");
    ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  }
  Set("d", "contents", "w");
  std::string text;
  const std::vector<Cell> cells = Inspector(*cluster_).ReadCells("docs", "d").value();
  for (const Cell& cell : cells) {
    text += StrCat(DescribeColumn(cell.column), " ", FamilyName(cell.family), ": ", DescribeCell(cell), "\n");
  }
  EXPECT_THAT(text, ContainsRegex("^\\[contents seen by parse\\] write: seen up to [0-9]+, started [0-9]+\n"
                                  "contents write: put w, started [0-9]+\n"
                                  "contents write: put v, started [0-9]+\n"
                                  "contents notify: changed\n"));
}

TEST_P(InspectorTest, NotificationsWait) {
  StartAndStop(Spec("parse", "contents", Nothing));
  Set("a", "contents", "v");
  Set("b", "contents", "v");
  Set("b", "other", "v");
  Inspector inspector(*cluster_);
  const std::vector<WaitingNotification> waiting = inspector.ListNotifications().value();
  ASSERT_THAT(waiting, SizeIs(2));
  EXPECT_EQ(waiting[0].cell, (CellName{"docs", "a", "contents"}));
  EXPECT_LT(waiting[0].since, waiting[1].since);
  EXPECT_GE(waiting[0].age, waiting[1].age);
  EXPECT_FALSE(waiting[0].pending);
  EXPECT_THAT(inspector.ListNotifications("docs", 1).value(), SizeIs(1));
  EXPECT_THAT(inspector.ListNotifications("nosuch"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(Backlogged(), 2u);
}

TEST_P(InspectorTest, QuarantineWithoutAWorker) {
  {
    Worker worker(*cluster_, Options());
    ObserverSpec fails =
        Spec("parse", "contents", [](ReadWrite&, const Notification&) { return absl::InternalError("no"); });
    fails.max_attempts = 1;
    worker.Observe(fails);
    ASSERT_THAT(worker.Start(), IsOk());
    Set("a", "contents", "v");
    Set("b", "contents", "v");
    ASSERT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  }
  Inspector inspector(*cluster_);
  const std::vector<Quarantined> entries = inspector.ListQuarantine().value();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_THAT(inspector.Replay(entries[0]), IsOk());
  EXPECT_THAT(inspector.Replay(entries[0]), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(inspector.Drop(entries[1]), IsOk());
  EXPECT_THAT(inspector.ListQuarantine().value(), IsEmpty());
  EXPECT_EQ(Backlogged(), 1u);  // no observer ran
  StartAndStop(Spec("other", "contents", Nothing));
  const absl::Status gone = inspector.Replay(entries[0]);
  EXPECT_THAT(gone, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(gone.message()), HasSubstr("parse"));
}

TEST_P(InspectorTest, TheSafePoint) {
  Inspector inspector(*cluster_);
  EXPECT_EQ(inspector.SafePoint().value(), Timestamp());
  const Timestamp collected = cluster_->CollectGarbage().value();
  EXPECT_EQ(inspector.SafePoint().value(), collected);
}

TEST_P(InspectorTest, AnInspectorOfAClosedClusterFails) {
  ASSERT_THAT(cluster_->Close(), IsOk());
  Inspector inspector(*cluster_);
  EXPECT_THAT(inspector.ListLocks(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(inspector.ListTables(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(inspector.ReadCells("docs", "d"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(inspector.Drop({}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(InspectorOracleTest, AnOracleThatFailsBrieflyIsTriedAgain) {
  TestOracle oracle;
  ClusterOptions options;
  options.gc_period = Duration(0);
  options.lock_lease = std::chrono::minutes(10);  // so that only this test draws timestamps
  const Cluster cluster = Assemble({NewMemoryStore(), Borrow(&oracle), NewLocalCoordinator(&oracle)}, options).value();
  ASSERT_THAT(cluster.CreateTable("t"), IsOk());
  Inspector inspector(cluster);
  oracle.FailNext(2);
  EXPECT_THAT(inspector.ListLocks(), IsOk());
  EXPECT_EQ(oracle.failures_left(), 0);
  oracle.FailNext(2);
  EXPECT_THAT(inspector.ListNotifications(), IsOk());
  EXPECT_EQ(oracle.failures_left(), 0);
}

}  // namespace
}  // namespace percolator
