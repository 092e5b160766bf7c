// SPDX-License-Identifier: Apache-2.0

// The background work of a cluster: src/txn/background.h.

#include "src/txn/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/txn/prewrite.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Fault::Kind;

// --- SecondaryQueue

class SecondaryQueueTest : public StepsTest {
 protected:
  // A transaction whose primary is committed. Returns the mutations that commit its secondaries.
  std::vector<RowMutation> Committed(uint64_t start, const std::string& row, int secondaries) {
    std::vector<PlannedWrite> planned = {Put(row, "p")};
    for (int i = 0; i < secondaries; ++i) planned.push_back(Put(row + std::to_string(i), "s"));
    const Writes t = Begin(start, planned);
    MustPrewrite(t);
    MustCommitPrimary(t, start + 1);
    return BuildSecondaryCommitRows(t, Timestamp(start + 1));
  }
};

TEST_F(SecondaryQueueTest, CommitsTheMutationsOfTheQueue) {
  SecondaryQueue queue(&me_.env(), 100);
  std::vector<RowMutation> mutations = Committed(7, "Bob", 3);
  ASSERT_TRUE(queue.Add(&mutations));
  EXPECT_THAT(Locks(), SizeIs(3));  // not yet
  queue.Drain();
  EXPECT_THAT(Locks(), IsEmpty());
}

TEST_F(SecondaryQueueTest, MutationsThatWaitTogetherAreSentTogether) {
  SecondaryQueue queue(&me_.env(), 100);
  for (uint64_t start : {7, 17, 27}) {
    std::vector<RowMutation> mutations = Committed(start, "row" + std::to_string(start), 2);
    ASSERT_TRUE(queue.Add(&mutations));
  }
  me_.wire().CountFromHere();
  queue.Drain();
  ASSERT_EQ(me_.wire().calls().size(), 1u);
  EXPECT_EQ(me_.wire().calls()[0].rows, 6u);
}

TEST_F(SecondaryQueueTest, ATransactionThatDoesNotFitIsRefusedWhole) {
  SecondaryQueue queue(&me_.env(), 4);
  std::vector<RowMutation> fits = Committed(7, "Bob", 3);
  std::vector<RowMutation> too_many = Committed(17, "Joe", 2);
  ASSERT_TRUE(queue.Add(&fits));
  EXPECT_FALSE(queue.Add(&too_many));
  EXPECT_THAT(too_many, SizeIs(2));
  queue.Drain();
  EXPECT_TRUE(queue.Add(&too_many));
}

TEST_F(SecondaryQueueTest, DrainOfAnEmptyQueueReturns) {
  SecondaryQueue queue(&me_.env(), 4);
  queue.Drain();
}

TEST_F(SecondaryQueueTest, TheDestructorCommitsWaitingMutations) {
  {
    SecondaryQueue queue(&me_.env(), 1000);
    std::vector<RowMutation> mutations = Committed(7, "Bob", 600);  // more than one batch
    ASSERT_TRUE(queue.Add(&mutations));
  }
  EXPECT_THAT(Locks(), IsEmpty());
}

// The timeout of some seconds is for all batches together, not for each.
TEST_F(SecondaryQueueTest, TheDestructorDoesNotWaitForAnUnreachableStore) {
  {
    SecondaryQueue queue(&me_.env(), 1000);
    std::vector<RowMutation> mutations = Committed(7, "Bob", 600);  // more than one batch
    me_.wire().CountFromHere();
    me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
    ASSERT_TRUE(queue.Add(&mutations));
  }
  EXPECT_LT(world_.runtime.Elapsed(), seconds(10));
  for (const Wire::Call& call : me_.wire().calls()) EXPECT_EQ(call.rows, 256u) << "only the first batch is tried";
}

TEST_F(SecondaryQueueTest, AnUnreachableStoreIsTriedAgain) {
  SecondaryQueue queue(&me_.env(), 100);
  std::vector<RowMutation> mutations = Committed(7, "Bob", 3);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  me_.wire().FailAt(2, {.kind = Kind::kLoseReply, .rows = 0b010});
  ASSERT_TRUE(queue.Add(&mutations));
  queue.Drain();
  EXPECT_THAT(Locks(), IsEmpty());
}

// Readers will finish it, because the transaction is committed.
TEST_F(SecondaryQueueTest, MutationsThatFailAreLeftToReaders) {
  SecondaryQueue queue(&me_.env(), 100);
  std::vector<RowMutation> mutations = Committed(7, "Bob", 1);
  me_.wire().CountFromHere();
  me_.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  ASSERT_TRUE(queue.Add(&mutations));
  queue.Drain();
  EXPECT_LT(world_.runtime.Elapsed(), seconds(10));
  EXPECT_EQ(Cells("Bob0"), "lock@7 put s of Bob");
  MustRead("Bob0", 1'000'000'000, "s");
}

TEST_F(SecondaryQueueTest, AnErrorThatStaysIsNotTriedAgain) {
  SecondaryQueue queue(&me_.env(), 100);
  std::vector<RowMutation> mutations = Committed(7, "Bob", 1);
  me_.wire().CountFromHere();
  me_.wire().FailFrom(1, {.kind = Kind::kRefused, .error = absl::ResourceExhaustedError("full")});
  ASSERT_TRUE(queue.Add(&mutations));
  queue.Drain();
  EXPECT_EQ(me_.wire().calls().size(), 1u);
}

TEST_F(SecondaryQueueTest, ARowThatAReaderRolledForwardIsDone) {
  SecondaryQueue queue(&me_.env(), 100);
  std::vector<RowMutation> mutations = Committed(7, "Bob", 2);
  MustRead("Bob0", 9, "s");
  ASSERT_TRUE(queue.Add(&mutations));
  queue.Drain();
  EXPECT_EQ(Cells("Bob0"), "write@8 put s from 7");
  EXPECT_EQ(Cells("Bob1"), "write@8 put s from 7");
}

// --- LockKeeper

class LockKeeperTest : public StepsTest {
 protected:
  Timestamp RefreshedOf(const std::string& row, uint64_t start) { return Met(row, start).lock.refreshed; }
};

TEST_F(LockKeeperTest, RefreshesThePrimaryWhileTheCommitLasts) {
  LockKeeper keeper(&me_.env());
  const Writes t = Begin(7, {Put("Bob", "3"), Put("Joe", "9")});
  {
    const LockKeeper::Membership kept(&keeper, t);
    MustPrewrite(t);
    world_.runtime.Sleep(Duration(10 * kLease));
    EXPECT_GE(RefreshedOf("Bob", 7), Timestamp(7 + 10 * kLease - kLease / 2));
    EXPECT_LE(RefreshedOf("Bob", 7), Timestamp(7 + 10 * kLease));
    EXPECT_EQ(RefreshedOf("Joe", 7), Timestamp(7));
    EXPECT_EQ(Cells("Bob"),
              "lock@7 put 3 primary");  // otherwise unchanged
    // So no resolver declares the transaction dead.
    EXPECT_FALSE(ResolveLocks(other_.env(), {Met("Joe", 7)}, LiveLocks::kKeep).value());
  }
  world_.runtime.Sleep(Duration(10 * kLease));
  EXPECT_TRUE(ResolveLocks(other_.env(), {Met("Joe", 7)}, LiveLocks::kKeep).value());
}

TEST_F(LockKeeperTest, AShortCommitIsLeftAlone) {
  LockKeeper keeper(&me_.env());
  const Writes t = Begin(7, {Put("Bob", "3")});
  const LockKeeper::Membership kept(&keeper, t);
  MustPrewrite(t);
  me_.wire().CountFromHere();
  world_.runtime.Sleep(Duration(kLease / 8));
  EXPECT_THAT(me_.wire().calls(), IsEmpty());
}

// T11, T14: extends only existing locks.
TEST_F(LockKeeperTest, RevivesNoLock) {
  LockKeeper keeper(&me_.env());
  const Writes rolled_back = Begin(7, {Put("Bob", "3")});
  const Writes committed = Begin(8, {Put("Joe", "9")});
  const Writes not_yet = Begin(9, {Put("Ann", "1")});
  const LockKeeper::Membership kept1(&keeper, rolled_back);
  const LockKeeper::Membership kept2(&keeper, committed);
  const LockKeeper::Membership kept3(&keeper, not_yet);
  MustPrewrite(rolled_back);
  RollBack(rolled_back);
  MustCommit(committed, 10);
  me_.wire().CountFromHere();
  world_.runtime.Sleep(Duration(10 * kLease));
  EXPECT_GT(me_.wire().CountOf("mutate"), 5u);
  EXPECT_EQ(Cells("Bob"), "rollback@7");
  EXPECT_EQ(Cells("Joe"), "write@10 put 9 from 8");
  EXPECT_EQ(Cells("Ann"), "");
}

// It does not touch another transaction's lock in the same cell either.
TEST_F(LockKeeperTest, LeavesTheLocksOfOthersAlone) {
  LockKeeper keeper(&me_.env());
  const Writes mine = Begin(7, {Put("Bob", "3")});
  const LockKeeper::Membership kept(&keeper, mine);
  MustPrewrite(mine);
  RollBack(mine);
  MustPrewriteBy(other_, BeginBy(other_, 8, {Put("Bob", "4")}));
  world_.runtime.Sleep(Duration(10 * kLease));
  EXPECT_EQ(Cells("Bob"), "lock@8 put 4 primary | rollback@7");
  EXPECT_EQ(RefreshedOf("Bob", 8), Timestamp(8));
}

TEST_F(LockKeeperTest, AnUnreachableStoreIsTriedAtTheNextTurn) {
  LockKeeper keeper(&me_.env());
  const Writes t = Begin(7, {Put("Bob", "3")});
  const LockKeeper::Membership kept(&keeper, t);
  MustPrewrite(t);
  me_.wire().CountFromHere();
  me_.wire().FailAt(1, {.kind = Kind::kLoseRequest});
  world_.runtime.Sleep(Duration(kLease));
  EXPECT_GT(RefreshedOf("Bob", 7), Timestamp(7));
}

// --- On a cluster, in two phases.

class ClusterBackgroundTest : public ClusterTest {
 protected:
  ClusterBackgroundTest() : ClusterTest(Options(false)) {}
};

TEST_F(ClusterBackgroundTest, CommitReturnsAtTheCommitPoint) {
  MustSet({Put("Bob", "3"), Put("Joe", "9")});
  EXPECT_THAT(AllLocks(world_.store.get()), SizeIs(1));
  world_.runtime.LetOthersRun();
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

TEST_F(ClusterBackgroundTest, WhenTheQueueIsFullCommitWritesItsSecondaries) {
  ClusterOptions options = Options(false);
  options.max_background_commits = 0;
  Process process(&world_, options);
  Transaction t(*process);
  Buffer(t, {Put("Bob", "3"), Put("Joe", "9"), Put("Ann", "1")});
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

TEST_F(ClusterBackgroundTest, CloseFinishesTheSecondaries) {
  Process process(&world_, Options(false));
  for (int i = 0; i < 10; ++i) {
    Transaction t(*process);
    Buffer(t, {Put("Bob" + std::to_string(i), "3"), Put("Joe" + std::to_string(i), "9")});
    ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  }
  EXPECT_THAT(AllLocks(world_.store.get()), SizeIs(10));
  EXPECT_THAT(process->Close(), IsOk());
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

// A commit that takes many times its lease is kept alive (T14).
TEST_F(ClusterBackgroundTest, ALongCommitIsKeptAlive) {
  ClusterOptions options = Options(false);
  options.lock_lease = seconds(1);
  Process slow(&world_, options);
  Process other(&world_, options);
  Transaction t(*slow);
  Buffer(t, {Put("Bob", "3"), Put("Joe", "9")});
  slow.wire().After(kPrewrites, [&] { world_.runtime.Sleep(seconds(10)); });
  bool read = false;
  world_.runtime.Start([&] {
    world_.runtime.Sleep(seconds(2));
    absl::StatusOr<Snapshot> snapshot = other->GetSnapshot();
    ASSERT_THAT(snapshot, IsOk());
    EXPECT_EQ(Get(*snapshot, "Joe"),
              std::nullopt);  // waits for the later commit
    read = true;
  });
  const CommitResult result = t.Commit();
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  world_.runtime.Sleep(seconds(5));
  EXPECT_TRUE(read);
}

}  // namespace
}  // namespace percolator
