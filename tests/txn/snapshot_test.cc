// SPDX-License-Identifier: Apache-2.0

// Snapshots: now, and as of a time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Fault::Kind;

class SnapshotTest : public ClusterTest {
 protected:
  std::optional<std::string> ReadAsOf(Timestamp ts, const std::string& row) {
    absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshotAt(ts);
    EXPECT_THAT(snapshot, IsOk());
    return Get(*snapshot, row);
  }
};

TEST_F(SnapshotTest, ASnapshotOfNowSeesEveryEarlierCommit) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  MustSet({Put("Bob", "2")});
  EXPECT_EQ(Get(*snapshot, "Bob"), "1");
  EXPECT_THAT(snapshot->GetCells(std::vector<CellName>{{kTable, "Joe", kColumn}, {kTable, "Ann", kColumn}}).value(),
              ElementsAre("1", std::nullopt));
  EXPECT_EQ(Scanned(*snapshot), "Bob{bal=1} Joe{bal=1}");
  EXPECT_EQ(Now("Bob"), "2");
}

TEST_F(SnapshotTest, AsOfATime) {
  const Timestamp first = MustSet({Put("Bob", "1")});
  const Timestamp second = MustSet({Put("Bob", "2")});
  EXPECT_EQ(ReadAsOf(first, "Bob"), "1");
  EXPECT_EQ(ReadAsOf(Timestamp(second.value() - 1), "Bob"), "1");
  EXPECT_EQ(ReadAsOf(second, "Bob"), "2");
  EXPECT_EQ(ReadAsOf(Timestamp(first.value() - 1), "Bob"), std::nullopt);
  EXPECT_EQ(cluster_->GetSnapshotAt(first)->timestamp(), first);
}

// A timestamp is also a time: an hour ago is a timestamp.
TEST_F(SnapshotTest, AsOfAnHourAgo) {
  world_.runtime.Sleep(std::chrono::hours(1));
  MustSet({Put("Bob", "old")});
  world_.runtime.Sleep(std::chrono::hours(1));
  MustSet({Put("Bob", "new")});
  const Timestamp now = cluster_->GetSnapshot()->timestamp();
  EXPECT_EQ(ReadAsOf(Timestamp(now.value() - 1'800'000'000), "Bob"), "old");
}

TEST_F(SnapshotTest, ATimestampInTheFutureOrZeroIsRefused) {
  const Timestamp now = cluster_->GetSnapshot()->timestamp();
  const absl::Status status = cluster_->GetSnapshotAt(Timestamp(now.value() + 1'000'000)).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("current timestamp"));
  EXPECT_THAT(cluster_->GetSnapshotAt(Timestamp()), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster_->GetSnapshotAt(Timestamp::Infinity()), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster_->GetSnapshotAt(now), IsOk());
}

// A transaction cannot commit below a snapshot that has been read (T8).
TEST_F(SnapshotTest, ALateCommitIsAboveEverySnapshotThatWasRead) {
  Process slow(&world_, Options(false));
  Transaction t(*slow);
  Buffer(t, {Put("Bob", "1")});
  Timestamp looked_at;
  slow.wire().Before(kPrewrites, [&] {
    looked_at = cluster_->GetSnapshot()->timestamp();
    EXPECT_EQ(ReadAsOf(looked_at, "Bob"), std::nullopt);
  });
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(ReadAsOf(looked_at, "Bob"), std::nullopt);
}

TEST_F(SnapshotTest, ASnapshotBelowTheSafePointIsTooOld) {
  const Timestamp first = MustSet({Put("Bob", "1")});
  const Timestamp second = MustSet({Put("Bob", "2")});
  ASSERT_THAT(world_.store->RaiseSafePoint(second), IsOk());
  const absl::Status status = cluster_->GetSnapshotAt(first).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_TRUE(IsSnapshotTooOld(status));
  EXPECT_EQ(ReadAsOf(second, "Bob"), "2");
}

TEST_F(SnapshotTest, ASnapshotThatTheSafePointHasPassedFails) {
  MustSet({Put("Bob", "1")});
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(Get(*snapshot, "Bob"), "1");
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(1'000'000)), IsOk());
  EXPECT_THAT(snapshot->Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kOutOfRange));
}

// A snapshot may live long, so it does not cache its reads.
TEST_F(SnapshotTest, ReadsAreNotCached) {
  MustSet({Put("Bob", "1")});
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(Get(*snapshot, "Bob"), "1");
  const uint64_t before = cluster_->metrics().store_reads;
  EXPECT_EQ(Get(*snapshot, "Bob"), "1");
  EXPECT_EQ(cluster_->metrics().store_reads, before + 1);
}

// G3. Regression: a Get asked a remote store for its safe point in a separate request, although the answer to the read
// contained it. That took half of the time of a Get.
TEST_F(SnapshotTest, AGetIsOneRequest) {
  MustSet({Put("Bob", "3")});
  absl::StatusOr<Snapshot> now = cluster_->GetSnapshot();
  ASSERT_THAT(now, IsOk());
  world_.store->asked_for_safe_point = 0;
  EXPECT_EQ(Get(*now, "Bob"), "3");
  EXPECT_EQ(world_.store->asked_for_safe_point, 0);
  ASSERT_THAT(world_.store->RaiseSafePoint(now->timestamp().Next()), IsOk());
  EXPECT_THAT(now->Get({kTable, "Bob", kColumn}), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(SnapshotTest, NeitherLocksNorWrites) {
  MustSet({Put("Bob", "1")});
  cluster_.wire().CountFromHere();
  {
    absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
    ASSERT_THAT(snapshot, IsOk());
    EXPECT_EQ(Get(*snapshot, "Bob"), "1");
    EXPECT_EQ(Scanned(*snapshot), "Bob{bal=1}");
  }
  EXPECT_EQ(cluster_.wire().CountOf("mutate") + cluster_.wire().CountOf("together"), 0u);
}

TEST_F(SnapshotTest, MayBeMoved) {
  MustSet({Put("Bob", "1")});
  absl::StatusOr<Snapshot> opened = cluster_->GetSnapshot();
  ASSERT_THAT(opened, IsOk());
  Snapshot snapshot = *std::move(opened);
  EXPECT_EQ(Get(snapshot, "Bob"), "1");
}

TEST_F(SnapshotTest, WithoutAnOracleThereIsNoSnapshotOfNow) {
  world_.oracle.AnswerWith(absl::FailedPreconditionError("the oracle has stopped"));
  EXPECT_THAT(cluster_->GetSnapshot(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(cluster_->GetSnapshotAt(Timestamp(1)), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SnapshotTest, AnOracleThatFailsBrieflyIsTriedAgain) {
  const Timestamp first = MustSet({Put("Bob", "1")});
  cluster_.wire().CountFromHere();
  cluster_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  EXPECT_THAT(cluster_->GetSnapshot(), IsOk());
  cluster_.wire().CountFromHere();
  EXPECT_THAT(cluster_->GetSnapshotAt(first), IsOk());
}

}  // namespace
}  // namespace percolator
