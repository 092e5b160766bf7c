// SPDX-License-Identifier: Apache-2.0

// Workers that start: their registration, and what others do at that moment.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "percolator/spi/assemble.h"
#include "tests/harness/hooked_store.h"
#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

class WorkerStartTest : public WorkerFixture {};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerStartTest, kClusterKinds, KindName);

// Regression: a worker without observers has no room in its queue, so it never scanned. The marks of removed observers
// stayed forever, and loaders waited for them.
TEST_P(WorkerStartTest, AWorkerWithoutObserversRemovesOldMarks) {
  {
    Worker former(*cluster_, Options());
    former.Observe(Spec("former", "c", Fail));
    ASSERT_THAT(former.Start(), IsOk());
    former.Pause();
    Set("r", "c", "v");
    EXPECT_THAT(former.Stop(), IsOk());
    ASSERT_EQ(Backlogged(), 1U);
  }
  Worker worker(*cluster_, Options());
  ASSERT_THAT(worker.Start(), IsOk());
  EXPECT_TRUE(Eventually([&] { return Backlogged() == 0; }));
}

// The acknowledgement's column would be longer than the store allows, and no run could ever begin.
TEST_P(WorkerStartTest, AnObservedColumnThatIsTooLongIsRefused) {
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("o", "c" + std::string(8191, '\0'), Fail));
  const absl::Status status = worker.Start();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

// A wrong write to this table could prevent the cluster from being opened.
TEST_P(WorkerStartTest, UsersCannotWriteToTheTableOfObservers) {
  Worker worker(*cluster_, Options());
  ASSERT_THAT(worker.Start(), IsOk());
  const CellView cell{"_percolator", "observers", "x"};
  const auto expect_refused = [&](const std::function<void(ReadWrite & t)>& write) {
    Transaction t(*cluster_);
    write(t);
    EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(t.Get({"docs", "r", "c"}), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(t.Commit().status, StatusIs(absl::StatusCode::kInvalidArgument));
  };
  expect_refused([&](ReadWrite& t) { t.Set(cell, "y"); });
  expect_refused([&](ReadWrite& t) { t.Delete(cell); });
  expect_refused([&](ReadWrite& t) { t.Verify(cell); });
}

// Runs code between a worker and the store.
class WorkerMeanwhileTest : public WorkerFixture {
 protected:
  void SetUp() override {
    const ClusterOptions options{.gc_period = Duration(0)};
    Parts parts = OpenParts("memory:", options).value();
    parts.store = store_ = std::make_shared<HookedStore>(parts.store);
    cluster_ = Assemble(parts, options).value();
    ASSERT_THAT(cluster_->CreateTable("docs"), IsOk());
  }
  // Runs this when the next commit is about to reach the store.
  void BeforeTheNextCommit(const std::function<void()>& run) {
    store_->together = [this, run](const JointMutation& mutation, Oracle* oracle) {
      store_->together = nullptr;
      run();
      return store_->MutateTogether(mutation, oracle);
    };
  }

  std::shared_ptr<HookedStore> store_;
};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerMeanwhileTest, ::testing::Values(ClusterKind{"memory"}), KindName);

// Regression: two workers with different observers start at once, and neither sees the other's registration.
// Transactions then knew the observers of only one of them, for half of a lease.
TEST_P(WorkerMeanwhileTest, WorkersThatStartAtOnceKnowEachOther) {
  WorkerOptions options = Options();
  options.add_only = true;
  std::atomic<int> first_runs = 0;
  std::atomic<int> second_runs = 0;
  Worker first(*cluster_, options);
  Worker second(*cluster_, options);
  first.Observe(Spec("first", "c", Count(&first_runs)));
  second.Observe(Spec("second", "d", Count(&second_runs)));
  BeforeTheNextCommit([&] { EXPECT_THAT(second.Start(), IsOk()); });
  ASSERT_THAT(first.Start(), IsOk());
  Set("r", "c", "v");
  Set("r", "d", "v");
  EXPECT_TRUE(Eventually([&] { return first_runs == 1 && second_runs == 1; })) << first_runs << " " << second_runs;
}

// A commit is in progress when a worker starts: it was prepared when the column had no observer, and is later than the
// snapshot of Backfill.
TEST_P(WorkerMeanwhileTest, ACommitInProgressWhenAWorkerStartsIsObserved) {
  std::atomic<int> runs = 0;
  Worker worker(*cluster_, Options());
  worker.Observe(Spec("late", "c", Count(&runs)));
  BeforeTheNextCommit([&] {
    EXPECT_THAT(worker.Start(), IsOk());
    EXPECT_THAT(worker.Backfill("late"), IsOk());
    EXPECT_THAT(worker.WaitUntilIdle(kLong), IsOk());
  });
  Set("r", "c", "v");
  EXPECT_TRUE(Eventually([&] { return runs == 1; }));
}

}  // namespace
}  // namespace percolator
