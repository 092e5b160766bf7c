// CombineQueue: what is added is counted once, whatever folds it and how often.

#include "percolator/combine_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/observe/journal.h"
#include "tests/observe/queue_fixture.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

class CombineQueueTest : public QueueTest {
 protected:
  CombineQueueTest() { EXPECT_THAT(cluster_->CreateTable("counts", CombineQueue::Schema()), IsOk()); }

  static CombineQueue Queue(size_t batch = 1000) {
    return CombineQueue("counts", AddDecimals, {.buckets = 1, .batch = batch, .neutral = "0"});
  }
  std::unique_ptr<Worker> NewWorker(const CombineQueue& queue) { return StartWorker({queue.Observer()}); }
  std::optional<std::string> Get(const CombineQueue& queue, const std::string& key) {
    Snapshot now = *cluster_->Now();
    return queue.Get(now, key).value();
  }
  std::optional<std::string> GetExact(const CombineQueue& queue, const std::string& key) {
    Snapshot now = *cluster_->Now();
    return queue.GetExact(now, key).value();
  }

  // Transactions that have started in one epoch: what they add goes there, however long it takes.
  std::vector<std::unique_ptr<Transaction>> StartInOneEpoch(int count) {
    for (;;) {
      std::vector<std::unique_ptr<Transaction>> started;
      for (int i = 0; i < count; ++i) {
        started.push_back(std::make_unique<Transaction>(cluster_.get()));
        EXPECT_THAT(started.back()->Start(), IsOk());
      }
      if (started.front()->timestamp().value() >> 20 == started.back()->timestamp().value() >> 20) return started;
    }
  }
  static void AddIn(Transaction* t, const CombineQueue& queue, const std::string& key, const std::string& delta) {
    ASSERT_THAT(queue.Add(*t, key, delta), IsOk());
    ASSERT_TRUE(t->Commit().committed());
  }
  static Notification At(Timestamp ts) { return EpochOf(ts, "counts", "fold"); }
};

INSTANTIATE_TEST_SUITE_P(Commit, CombineQueueTest, ::testing::Bool(), CommitName);

TEST_P(CombineQueueTest, ManyAddAndNobodyIsInConflict) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  worker->Pause();
  const uint64_t conflicts = cluster_->stats().conflicts;
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) Add(queue, "hot", "1");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cluster_->stats().conflicts, conflicts);
  EXPECT_EQ(Get(queue, "hot"), std::nullopt);
  EXPECT_EQ(GetExact(queue, "hot"), "400");
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "hot"), "400");
  EXPECT_EQ(GetExact(queue, "hot"), "400");
}

TEST_P(CombineQueueTest, FoldedWhileAdded) {
  const CombineQueue queue("counts", AddDecimals, {.buckets = 4, .batch = 7});
  const auto worker = NewWorker(queue);
  const auto other = NewWorker(queue);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) Add(queue, "key" + std::to_string(i % 5), "2");
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Get(queue, "key" + std::to_string(i)), "160");
  std::vector<std::string> keys;
  Snapshot now = *cluster_->Now();
  ASSERT_THAT(queue.ForEach(now, [&](std::string_view key, std::string_view) { keys.emplace_back(key); }), IsOk());
  EXPECT_THAT(keys, ::testing::ElementsAre("key0", "key1", "key2", "key3", "key4"));
}

TEST_P(CombineQueueTest, SeveralTimesInATransaction) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::Status {
    EXPECT_THAT(queue.Add(t, "a", "1"), IsOk());
    EXPECT_THAT(queue.Add(t, "b", "5"), IsOk());
    EXPECT_THAT(queue.Add(t, {{"a", "2"}, {"c", "7"}}), IsOk());
    EXPECT_EQ(queue.GetExact(t, "a").value(), "3");  // its own
    return absl::OkStatus();
  }),
              IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "3");
  EXPECT_EQ(Get(queue, "b"), "5");
  EXPECT_EQ(Get(queue, "c"), "7");
}

TEST_P(CombineQueueTest, WhatIsNotCommittedIsNotCounted) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::Status {
    EXPECT_THAT(queue.Add(t, "a", "1"), IsOk());
    return absl::CancelledError("changed my mind");
  }),
              StatusIs(absl::StatusCode::kCancelled));
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(GetExact(queue, "a"), std::nullopt);
}

TEST_P(CombineQueueTest, NeutralIsDeleted) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  Add(queue, "a", "3");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "3");
  worker->Pause();
  Add(queue, "a", "-3");
  EXPECT_EQ(GetExact(queue, "a"), std::nullopt);
  EXPECT_EQ(Get(queue, "a"), "3");
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), std::nullopt);
}

TEST_P(CombineQueueTest, TwoThatFoldTheSameDeltas) {
  const CombineQueue queue = Queue();
  const Timestamp ts = Add(queue, "a", "1");
  const ObserverFunction fold = queue.Observer().run;
  Transaction one(cluster_.get());
  Transaction two(cluster_.get());
  ASSERT_THAT(fold(one, At(ts)), IsOk());
  ASSERT_THAT(fold(two, At(ts)), IsOk());
  EXPECT_TRUE(one.Commit().committed());
  EXPECT_TRUE(IsConflict(two.Commit().status));
  EXPECT_EQ(Get(queue, "a"), "1");
  EXPECT_EQ(GetExact(queue, "a"), "1");
}

// The sum of what one folds is neutral, and it leaves the value alone; the deltas are still its alone.
TEST_P(CombineQueueTest, TwoThatFoldTheSameDeltasToNothing) {
  const CombineQueue queue = Queue();
  const auto adding = StartInOneEpoch(3);
  const Timestamp ts = adding[0]->timestamp();
  AddIn(adding[0].get(), queue, "a", "1");
  AddIn(adding[1].get(), queue, "a", "-1");
  const ObserverFunction fold = queue.Observer().run;
  Transaction one(cluster_.get());
  Transaction two(cluster_.get());
  ASSERT_THAT(fold(one, At(ts)), IsOk());
  AddIn(adding[2].get(), queue, "a", "5");
  ASSERT_THAT(fold(two, At(ts)), IsOk());
  EXPECT_TRUE(one.Commit().committed());
  EXPECT_TRUE(IsConflict(two.Commit().status));
  EXPECT_EQ(GetExact(queue, "a"), "5");
}

TEST_P(CombineQueueTest, TwoThatFoldDifferentDeltasOfAKey) {
  const CombineQueue queue = Queue(1);
  const Timestamp first = Add(queue, "a", "1");
  const ObserverFunction fold = queue.Observer().run;
  Transaction one(cluster_.get());
  ASSERT_THAT(fold(one, At(first)), IsOk());
  // Another epoch, by hand: as if it had been added a second later.
  Transaction late(cluster_.get());
  const Timestamp second = *late.Start();
  const std::string row = "j/00000000/" + Hex(second.value() + (1 << 20));
  std::string bytes("\1a\0\1", 4);
  bytes.append(std::string("10\0\1", 4));
  ASSERT_THAT(late.Set("counts", row, "entries", bytes), IsOk());
  ASSERT_TRUE(late.Commit().committed());
  Transaction two(cluster_.get());
  ASSERT_THAT(fold(two, At(Timestamp(second.value() + (1 << 20)))), IsOk());
  EXPECT_TRUE(one.Commit().committed());
  EXPECT_TRUE(IsConflict(two.Commit().status));
  EXPECT_EQ(Get(queue, "a"), "1");
  EXPECT_EQ(GetExact(queue, "a"), "11");
}

TEST_P(CombineQueueTest, ARunIsBounded) {
  const CombineQueue queue = Queue(10);
  const auto adding = StartInOneEpoch(25);
  const Timestamp ts = adding[0]->timestamp();
  for (const auto& t : adding) AddIn(t.get(), queue, "a", "1");
  const ObserverFunction fold = queue.Observer().run;
  for (const char* folded : {"10", "20", "25", "25"}) {
    ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { return fold(t, At(ts)); }), IsOk());
    EXPECT_EQ(Get(queue, "a"), folded);
    EXPECT_EQ(GetExact(queue, "a"), "25");
  }
}

TEST_P(CombineQueueTest, ARunThatIsBoundedGoesOn) {
  const CombineQueue queue = Queue(10);
  const auto worker = NewWorker(queue);
  worker->Pause();
  for (int i = 0; i < 35; ++i) Add(queue, "a", "1");
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "35");
}

TEST_P(CombineQueueTest, OneThatCommitsLateIsCounted) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  Transaction late(cluster_.get());
  ASSERT_THAT(queue.Add(late, "a", "100"), IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // into another epoch
  Add(queue, "a", "1");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "1");
  ASSERT_TRUE(late.Commit().committed());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "101");
}

TEST_P(CombineQueueTest, AddedBeforeThereWasAWorker) {
  const CombineQueue queue = Queue();
  Add(queue, "a", "1");
  const auto worker = NewWorker(queue);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), std::nullopt);
  ASSERT_THAT(cluster_->Transact([&](ReadWrite& t) { return queue.NotifyAll(t); }), IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), "1");
}

TEST_P(CombineQueueTest, ADeltaThatCannotBeCombined) {
  const CombineQueue queue = Queue();
  const auto worker = NewWorker(queue);
  Add(queue, "a", "1");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  Add(queue, "a", "one");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  const auto quarantined = worker->ListQuarantine();
  ASSERT_THAT(quarantined, IsOk());
  ASSERT_EQ(quarantined->size(), 1U);
  EXPECT_THAT(quarantined->front().error, HasSubstr("\"one\""));
  EXPECT_EQ(Get(queue, "a"), "1");
}

TEST(AddDecimalsTest, Adds) {
  EXPECT_EQ(AddDecimals("1", "2").value(), "3");
  EXPECT_EQ(AddDecimals("-1", "1").value(), "0");
  for (const char* bad : {"", "x", "1 ", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(AddDecimals("1", bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
    EXPECT_THAT(AddDecimals(bad, "1"), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
  EXPECT_THAT(AddDecimals(std::to_string(std::numeric_limits<int64_t>::max()), "1"),
              StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace percolator
