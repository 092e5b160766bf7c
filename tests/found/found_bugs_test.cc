// Bugs that were found by the simulator or by thinking, each with the shortest story that shows it.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "src/txn/background.h"
#include "src/txn/tables.h"
#include "src/txn/writes.h"
#include "tests/harness/hooked_store.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

constexpr uint64_t kHour = uint64_t{3600} * 1'000'000;

class FoundBugsTest : public ::testing::Test {
 protected:
  FoundBugsTest() { EXPECT_THAT(cluster_.CreateTable("t"), IsOk()); }

  Cluster NewCluster(const ClusterOptions& options) {
    return Assemble({Borrow(&store_), Borrow(&oracle_), Borrow(coordinator_.get())}, options).value();
  }
  Cluster TwoPhase() {
    ClusterOptions options = options_;
    options.one_step_commit = false;
    return NewCluster(options);
  }

  static absl::Status Put(const Cluster& cluster, const std::string& row, const std::string& value) {
    return cluster.Transact([&](ReadWrite& t) { t.Set({"t", row, "c"}, value); });
  }
  std::string Value(const std::string& row, const std::string& table = "t") {
    absl::StatusOr<Snapshot> now = cluster_.GetSnapshot();
    EXPECT_THAT(now, IsOk());
    const auto value = now->Get({table, row, "c"});
    return value.ok() ? value->value_or("(absent)") : std::string(value.status().message());
  }

  const std::unique_ptr<Store> memory_ = NewMemoryStore();
  HookedStore store_{Borrow(memory_.get())};
  TestOracle oracle_{10 * kHour};
  const std::unique_ptr<Coordinator> coordinator_ = NewLocalCoordinator(&oracle_);
  ClusterOptions options_{.gc_period = Duration(0)};
  const Cluster cluster_ = NewCluster(options_);
};

// The first write to a table reads the list of tables. A write cannot be repeated, because its error fails the transaction: so
// that read is retried, as others are.
TEST_F(FoundBugsTest, AWriteOutlastsAPassingFailureToListTheTables) {
  store_.failing_lists = 3;
  EXPECT_THAT(cluster_.Transact([](ReadWrite& t) { t.Set({"t", "r", "c"}, "v"); }), IsOk());
  EXPECT_EQ(store_.failing_lists, 0);
}

// T10. A one-step commit is delivered twice; between the two, somebody overwrites the cell. The second answer is "refused",
// and the newest record is not ours: yet it was committed.
TEST_F(FoundBugsTest, CommitDeliveredTwiceAndOverwrittenBetween) {
  store_.together = [&](const JointMutation& mutation, Oracle* oracle) {
    store_.together = nullptr;
    EXPECT_TRUE(memory_->MutateTogether(mutation, oracle)->applied);
    EXPECT_THAT(Put(cluster_, "r", "another's"), IsOk());
    return memory_->MutateTogether(mutation, oracle);
  };
  Transaction t(cluster_);
  t.Set({"t", "r", "c"}, "mine");
  ASSERT_THAT(t.status(), IsOk());
  EXPECT_TRUE(t.Commit().committed());
  EXPECT_EQ(Value("r"), "another's");
}

// T10, found by the simulator (seed 504). The store gets no timestamp and says so; a duplicate of the request comes later.
TEST_F(FoundBugsTest, LateDuplicateOfACommitThatGotNoTimestamp) {
  JointMutation sent;
  store_.together = [&](const JointMutation& mutation, Oracle* oracle) {
    sent = mutation;
    oracle_.FailNext(1);
    return memory_->MutateTogether(mutation, oracle);
  };
  Transaction t(cluster_);
  t.Set({"t", "r", "c"}, "mine");
  ASSERT_THAT(t.status(), IsOk());
  EXPECT_EQ(t.Commit().outcome, CommitResult::Outcome::kAborted);
  store_.together = nullptr;
  EXPECT_FALSE(memory_->MutateTogether(sent, &oracle_)->applied);
  EXPECT_EQ(Value("r"), "(absent)");
}

// And Transact does not end because of one timestamp that was not to be had.
TEST_F(FoundBugsTest, TransactGoesOnAfterAMissingTimestamp) {
  int runs = 0;
  const absl::Status done = cluster_.Transact([&](ReadWrite& t) {
    if (absl::Status s = t.Get({"t", "r", "c"}).status(); !s.ok()) return s;
    oracle_.FailNext(runs++ == 0 ? 1 : 0);
    t.Set({"t", "r", "c"}, "v");
    return absl::OkStatus();
  });
  EXPECT_THAT(done, IsOk());
  EXPECT_EQ(runs, 2);
}

// G3. The Get of a snapshot asked a distant store for its safe point, in a request of its own, although the answer to the
// read had told it: half of what a Get took.
TEST_F(FoundBugsTest, AGetOfASnapshotIsOneRequest) {
  ASSERT_THAT(Put(cluster_, "r", "v"), IsOk());
  absl::StatusOr<Snapshot> now = cluster_.GetSnapshot();
  ASSERT_THAT(now, IsOk());
  store_.asked_for_safe_point = 0;
  EXPECT_EQ(now->Get({"t", "r", "c"}).value(), "v");
  EXPECT_EQ(store_.asked_for_safe_point, 0);
  ASSERT_THAT(store_.RaiseSafePoint(now->timestamp().Next()), IsOk());
  EXPECT_THAT(now->Get({"t", "r", "c"}), StatusIs(absl::StatusCode::kOutOfRange));
}

// T1, found by the simulator (seed 229). A resolver that met a lock is slow; meanwhile the transaction is rolled forward,
// overwritten, and its verdict collected. The resolver must not take "nothing there" for "rolled back" and say so for good:
// whoever asks for the outcome later would believe it.
TEST_F(FoundBugsTest, SlowResolverDoesNotMarkACollectedCommit) {
  const Cluster writer = TwoPhase();
  Transaction t(writer);
  t.Set({"t", "a", "c"}, "1");
  t.Set({"t", "b", "c"}, "1");
  ASSERT_THAT(t.status(), IsOk());
  bool primary_done = false;
  store_.before_mutate = [&](const std::vector<RowMutation>& mutations) {
    if (mutations[0].row == "a" && mutations[0].condition.quantifier == Condition::Quantifier::kAll)
      primary_done = true;
    if (primary_done && mutations[0].row == "b") store_.down = true;  // its secondary stays locked
  };
  CommitResult result = t.Commit();
  ASSERT_TRUE(result.committed());
  store_.before_mutate = nullptr;
  store_.down = false;
  ASSERT_THAT(Put(cluster_, "a", "2"), IsOk());
  oracle_.Advance(2 * kHour);
  // What the slow resolver knew of: the lock of b. Garbage collection comes first.
  const absl::StatusOr<Timestamp> safe_point = cluster_.CollectGarbage();
  ASSERT_THAT(safe_point, IsOk());
  EXPECT_EQ(Value("b"), "1");
  result.outcome = CommitResult::Outcome::kUnknown;
  EXPECT_THAT(cluster_.Resolve(result), StatusIs(absl::StatusCode::kOutOfRange)) << "and not: aborted";
}

// G2. While garbage collection resolves the locks of one table, another table is dropped: its kNotFound must not be taken
// for this one's, whose locks would stay, and lose their verdicts.
TEST_F(FoundBugsTest, GarbageCollectionWhileAnotherTableIsDropped) {
  ASSERT_THAT(cluster_.CreateTable("a"), IsOk());
  ASSERT_THAT(cluster_.CreateTable("b"), IsOk());
  ASSERT_THAT(cluster_.CreateTable("d"), IsOk());
  // A lock in d whose primary, in a, was never locked.
  const Timestamp start = oracle_.GetTimestamp().value();
  const Lock orphan{.primary = CellName{"a", "r", "c"}, .refreshed = start, .value = "orphan"};
  ASSERT_THAT(memory_->Mutate({BuildPrewriteRow({"d", "1", {{"c", orphan, ""}}}, start)})[0], IsOk());
  // And one after it of a transaction that is committed, whose secondary nobody has committed yet.
  const Cluster writer = TwoPhase();
  store_.before_mutate = [&](const std::vector<RowMutation>& mutations) {
    if (mutations[0].table == "d") store_.down = mutations[0].condition.quantifier == Condition::Quantifier::kAll;
  };
  Transaction committed(writer);
  committed.Set({"d", "2", "c"}, "1");
  committed.Set({"b", "2", "c"}, "1");
  ASSERT_THAT(committed.status(), IsOk());
  ASSERT_TRUE(committed.Commit().committed());
  store_.before_mutate = nullptr;
  store_.down = false;
  oracle_.Advance(2 * kHour);
  // When garbage collection is about to leave a marker in a, that table is gone.
  store_.before_mutate = [&](const std::vector<RowMutation>& mutations) {
    if (mutations[0].table == "a") memory_->DropTable("a").IgnoreError();
  };
  EXPECT_THAT(cluster_.CollectGarbage(), IsOk());
  EXPECT_EQ(Value("1", "d"), "(absent)");
  EXPECT_EQ(Value("2", "d"), "1");
  EXPECT_EQ(Value("2", "b"), "1");
}

// One row with more old versions than fit into one mutation.
TEST_F(FoundBugsTest, GarbageOfAHotRowIsErasedInSteps) {
  constexpr int kVersions = 25'000;
  for (int i = 0; i < kVersions; ++i) ASSERT_THAT(Put(cluster_, "hot", std::to_string(i)), IsOk());
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) { t.Delete({"t", "hot", "c"}); }), IsOk());
  oracle_.Advance(2 * kHour);
  EXPECT_THAT(cluster_.CollectGarbage(), IsOk());
  EXPECT_EQ(cluster_.metrics().versions_collected, kVersions + 1u);
  EXPECT_THAT(memory_->Scan({"t", RowRange::All(), {{Family::kWrite}}})->rows, ::testing::IsEmpty());
}

// A transaction that is older than the retention holds the safe point below its start: it can still write.
TEST_F(FoundBugsTest, LongTransactionCanCommit) {
  Transaction t(cluster_);
  ASSERT_THAT(t.Get({"t", "r", "c"}), IsOk());
  oracle_.Advance(2 * kHour);
  ASSERT_THAT(cluster_.CollectGarbage(), IsOk());
  t.Set({"t", "r", "c"}, "late");
  ASSERT_THAT(t.status(), IsOk());
  EXPECT_TRUE(t.Commit().committed());
}

// A list of tables that was read before a table was dropped and made again must not be kept.
TEST_F(FoundBugsTest, SchemaThatChangedWhileItWasLoaded) {
  Tables tables(&store_);
  store_.after_list = [&] {
    ASSERT_THAT(memory_->DropTable("t"), IsOk());
    ASSERT_THAT(memory_->CreateTable({"t", EncodeSchema({.notify_only_columns = {"n"}})}), IsOk());
    tables.Forget();
  };
  EXPECT_THAT(tables.CheckWritable("t", "n"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FoundBugsTest, ClosedClusterRefusesEverything) {
  EXPECT_THAT(cluster_.Close(), IsOk());
  EXPECT_THAT(cluster_.Close(), IsOk());
  EXPECT_TRUE(IsClosed(Put(cluster_, "r", "v")));
  EXPECT_TRUE(IsClosed(cluster_.GetSnapshot().status()));
  EXPECT_TRUE(IsClosed(cluster_.CollectGarbage().status()));
  EXPECT_TRUE(IsClosed(cluster_.CreateTable("u")));
  EXPECT_EQ(cluster_.metrics().commits, 0u);
  Transaction t(cluster_);
  EXPECT_TRUE(IsClosed(t.Get({"t", "r", "c"}).status()));
  t.Set({"t", "r", "c"}, "v");
  EXPECT_TRUE(IsClosed(t.status()));
  EXPECT_EQ(t.Commit().outcome, CommitResult::Outcome::kAborted);
}

TEST_F(FoundBugsTest, CloseWaitsForGarbageCollection) {
  for (int i = 0; i < 2000; ++i) ASSERT_THAT(Put(cluster_, "r" + std::to_string(i % 50), "v"), IsOk());
  oracle_.Advance(2 * kHour);
  std::atomic<bool> began{false};
  store_.before_mutate = [&](const std::vector<RowMutation>& /*mutations*/) { began = true; };
  std::thread collector([&] { cluster_.CollectGarbage().IgnoreError(); });
  while (!began) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(cluster_.Close(), IsOk());
  collector.join();
}

TEST_F(FoundBugsTest, EndlessDurationsDoNotOverflow) {
  ClusterOptions options = options_;
  options.gc_period = Duration::max();
  options.gc_retention = Duration::max();
  options.call_timeout = Duration::max();
  const Cluster cluster = NewCluster(options);
  int runs = 0;
  const absl::Status done = cluster.Transact(
      [&](ReadWrite& t) -> absl::Status {
        if (++runs < 3) return absl::AbortedError("again");
        t.Set({"t", "r", "c"}, "v");
        return absl::OkStatus();
      },
      {.timeout = Duration::max()});
  EXPECT_THAT(done, IsOk());
  EXPECT_EQ(runs, 3);
}

TEST_F(FoundBugsTest, SecondCommitGivesTheSameAnswerAndNothingCanBeReadAfterIt) {
  Transaction t(cluster_);
  t.Set({"t", "r", "c"}, "v");
  ASSERT_THAT(t.status(), IsOk());
  const CommitResult first = t.Commit();
  const CommitResult second = t.Commit();
  EXPECT_TRUE(first.committed());
  EXPECT_TRUE(second.committed());
  EXPECT_EQ(first.commit_ts, second.commit_ts);
  EXPECT_THAT(t.Get({"t", "r", "c"}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// What Transact says of an unknown outcome is enough to ask again.
TEST_F(FoundBugsTest, UnknownOutcomeOfTransactCanBeResolved) {
  options_.call_timeout = std::chrono::milliseconds(500);
  ClusterOptions options = options_;
  options.one_step_commit = false;
  const Cluster cluster = NewCluster(options);
  store_.before_mutate = [&](const std::vector<RowMutation>& mutations) {
    if (mutations[0].condition.quantifier != Condition::Quantifier::kAll) return;
    ASSERT_THAT(memory_->Mutate(mutations)[0], IsOk());  // applied, and the answer is lost
    store_.down = true;
  };
  // The answer to this one is "refused": its record is found. From then on nobody can be reached.
  const absl::Status done = Put(cluster, "r", "v");
  store_.before_mutate = nullptr;
  store_.down = false;
  if (done.ok()) return;  // reads still worked, so the outcome was found out at once
  const std::optional<CommitResult> unknown = GetUnknownCommit(done);
  ASSERT_TRUE(unknown.has_value()) << done;
  const absl::StatusOr<CommitResult> resolved = cluster.Resolve(*unknown);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_TRUE(resolved->committed());
}

}  // namespace
}  // namespace percolator
