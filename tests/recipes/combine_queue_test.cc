// SPDX-License-Identifier: Apache-2.0

// CombineQueue: each delta is counted once, whichever worker folds it and however often.

#include "percolator/combine_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "percolator/column.h"
#include "percolator/transaction.h"
#include "src/recipes/journal.h"
#include "tests/harness/eventually.h"
#include "tests/recipes/queue_fixture.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

// A Sum that waits until the test opens the gate. A run that waits here has read its deltas but has not committed, so a
// test can decide the order in which runs commit.
class Gate {
 public:
  CombineQueue<int64_t>::Combine sum() {
    return [this](int64_t a, int64_t b) {
      if (!open_) {
        ++waiting_;
        EXPECT_TRUE(Eventually([this] { return open_.load(); }));
      }
      return Sum(a, b);
    };
  }
  // Waits until this number of runs has stopped here.
  bool HasStopped(int runs) const {
    return Eventually([&] { return waiting_ == runs; });
  }
  void Open() { open_ = true; }

 private:
  std::atomic<bool> open_ = false;
  std::atomic<int> waiting_ = 0;
};

class CombineQueueTest : public QueueTest {
 protected:
  CombineQueueTest() { EXPECT_THAT(Queue().EnsureTable(cluster_), IsOk()); }

  static CombineQueue<int64_t> Queue(size_t batch = 1000, CombineQueue<int64_t>::Combine combine = Sum) {
    return {"counts", std::move(combine), {.buckets = 1, .batch = batch}};
  }
  std::unique_ptr<Worker> NewWorker(const CombineQueue<int64_t>& queue, const WorkerOptions& options = Quick()) {
    return StartWorker([&](Worker& worker) { queue.Attach(worker); }, options);
  }
  static ObserverMetrics FoldsOf(const Worker& worker) { return MetricsOf(worker, "fold-counts"); }
  std::optional<int64_t> Get(const CombineQueue<int64_t>& queue, const std::string& key) {
    return queue.Get(*cluster_.GetSnapshot(), key).value();
  }
  std::optional<int64_t> GetExact(const CombineQueue<int64_t>& queue, const std::string& key) {
    return queue.GetExact(*cluster_.GetSnapshot(), key).value();
  }

  // Transactions that have started in one epoch: their deltas belong to it, however long they take.
  std::vector<std::unique_ptr<Transaction>> StartInOneEpoch(int count) {
    for (;;) {
      std::vector<std::unique_ptr<Transaction>> started;
      for (int i = 0; i < count; ++i) {
        started.push_back(std::make_unique<Transaction>(cluster_));
        EXPECT_THAT(started.back()->Start(), IsOk());
      }
      if (started.front()->timestamp().value() >> 20 == started.back()->timestamp().value() >> 20) return started;
    }
  }
  static void AddIn(Transaction* t, const CombineQueue<int64_t>& queue, const std::string& key, int64_t delta) {
    queue.Add(*t, key, delta);
    ASSERT_THAT(t->status(), IsOk());
    ASSERT_TRUE(t->Commit().committed());
  }
  static CellName At(Timestamp ts) { return EpochOf(ts, "counts", "fold"); }
};

INSTANTIATE_TEST_SUITE_P(Commit, CombineQueueTest, ::testing::Bool(), CommitName);

TEST_P(CombineQueueTest, ManyAddWithoutConflicts) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  worker->Pause();
  const uint64_t conflicts = cluster_.metrics().conflicts;
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) Add(queue, "hot", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cluster_.metrics().conflicts, conflicts);
  EXPECT_EQ(Get(queue, "hot"), std::nullopt);
  EXPECT_EQ(GetExact(queue, "hot"), 400);
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "hot"), 400);
  EXPECT_EQ(GetExact(queue, "hot"), 400);
}

TEST_P(CombineQueueTest, DeltasAreFoldedWhileOthersAreAdded) {
  const CombineQueue<int64_t> queue("counts", Sum, {.buckets = 4, .batch = 7});
  const auto worker = NewWorker(queue);
  const auto other = NewWorker(queue);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) Add(queue, "key" + std::to_string(i % 5), 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Get(queue, "key" + std::to_string(i)), 160);
  std::vector<std::string> keys;
  ASSERT_THAT(queue.ForEach(*cluster_.GetSnapshot(),
                            [&](std::string_view key, int64_t value) {
                              keys.emplace_back(key);
                              EXPECT_EQ(value, 160);
                            }),
              IsOk());
  EXPECT_THAT(keys, ElementsAre("key0", "key1", "key2", "key3", "key4"));
}

TEST_P(CombineQueueTest, ATransactionMayAddSeveralTimes) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) {
    queue.Add(t, "a", 1);
    queue.Add(t, "b", 5);
    queue.Add(t, {{"a", 2}, {"c", 7}});
    EXPECT_THAT(t.status(), IsOk());
    EXPECT_EQ(queue.GetExact(t, "a").value(), 3);  // its own delta
  }),
              IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 3);
  EXPECT_EQ(Get(queue, "b"), 5);
  EXPECT_EQ(Get(queue, "c"), 7);
}

TEST_P(CombineQueueTest, UncommittedDeltasAreNotCounted) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) -> absl::Status {
    queue.Add(t, "a", 1);
    EXPECT_THAT(t.status(), IsOk());
    return absl::CancelledError("changed my mind");
  }),
              StatusIs(absl::StatusCode::kCancelled));
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(GetExact(queue, "a"), std::nullopt);
}

TEST_P(CombineQueueTest, ANeutralValueIsDeleted) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  Add(queue, "a", 3);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 3);
  worker->Pause();
  Add(queue, "a", -3);
  EXPECT_EQ(GetExact(queue, "a"), std::nullopt);
  EXPECT_EQ(Get(queue, "a"), 3);
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), std::nullopt);
}

TEST_P(CombineQueueTest, TwoThatFoldTheSameDeltas) {
  Gate gate;
  const CombineQueue<int64_t> queue = Queue();
  const auto slow = NewWorker(Queue(1000, gate.sum()), WithoutClaims());
  Add(queue, "a", 1);
  ASSERT_TRUE(gate.HasStopped(1));
  const auto quick = NewWorker(queue, WithoutClaims());
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*quick).commits >= 1; }));
  EXPECT_EQ(Get(queue, "a"), 1);
  gate.Open();
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*slow).conflicts == 1; }));
  ASSERT_THAT(slow->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 1);
  EXPECT_EQ(GetExact(queue, "a"), 1);
}

// The sum of one worker's deltas is neutral, so it does not write the value; the deltas still belong to it alone.
TEST_P(CombineQueueTest, TwoThatFoldTheSameDeltasToNothing) {
  Gate first;
  Gate second;
  const CombineQueue<int64_t> queue = Queue();
  const auto one = NewWorker(Queue(1000, first.sum()), WithoutClaims());
  one->Pause();
  const auto adding = StartInOneEpoch(3);
  AddIn(adding[0].get(), queue, "a", 1);
  AddIn(adding[1].get(), queue, "a", -1);
  one->Resume();
  ASSERT_TRUE(first.HasStopped(1));
  one->Pause();  // it takes no work after this run
  AddIn(adding[2].get(), queue, "a", 5);
  const auto two = NewWorker(Queue(1000, second.sum()), WithoutClaims());
  ASSERT_TRUE(second.HasStopped(1));
  two->Pause();
  first.Open();
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*one).commits == 1; }));
  second.Open();
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*two).conflicts == 1; }));
  EXPECT_EQ(Get(queue, "a"), std::nullopt);
  EXPECT_EQ(GetExact(queue, "a"), 5);
  two->Resume();
  ASSERT_THAT(two->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 5);
}

TEST_P(CombineQueueTest, TwoThatFoldDifferentDeltasOfAKey) {
  Gate first;
  Gate second;
  const CombineQueue<int64_t> queue = Queue(1);
  const auto one = NewWorker(Queue(1, first.sum()), WithoutClaims());
  Add(queue, "a", 1);
  ASSERT_TRUE(first.HasStopped(1));
  one->Pause();
  // Another epoch, by hand: as if it had been added a second later.
  Transaction late(cluster_);
  const Timestamp later(late.Start()->value() + (1 << 20));
  std::string bytes("\1a\0\1", 4);
  bytes.append(std::string("10\0\1", 4));
  late.Set({"counts", "j/00000000/" + Hex(later.value()), "entries"}, bytes);
  late.Notify(At(later));
  ASSERT_TRUE(late.Commit().committed());
  // A run for each epoch: one folds the other delta, and one folds the same delta as the first worker.
  const auto two = NewWorker(Queue(1, second.sum()), WithoutClaims());
  ASSERT_TRUE(second.HasStopped(2));
  two->Pause();
  first.Open();
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*one).commits == 1; }));
  second.Open();
  ASSERT_TRUE(Eventually([&] { return FoldsOf(*two).conflicts == 2; }));
  EXPECT_EQ(FoldsOf(*two).commits, 0);
  EXPECT_EQ(Get(queue, "a"), 1);
  EXPECT_EQ(GetExact(queue, "a"), 11);
  two->Resume();
  ASSERT_THAT(two->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 11);
}

TEST_P(CombineQueueTest, ARunIsBounded) {
  const CombineQueue<int64_t> queue = Queue(10);
  std::vector<std::optional<int64_t>> folded;  // the values written by the runs
  WorkerOptions options = Quick();
  options.threads = 1;
  options.on_commit = [&](std::string_view, const Notification&, Timestamp) {
    const std::optional<int64_t> value = Get(queue, "a");
    if (folded.empty() || folded.back() != value) folded.push_back(value);
    EXPECT_EQ(GetExact(queue, "a"), 25);
  };
  const auto worker = NewWorker(queue, options);
  worker->Pause();
  const auto adding = StartInOneEpoch(25);
  for (const auto& t : adding) AddIn(t.get(), queue, "a", 1);
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(folded, ElementsAre(10, 20, 25));
  // A run without deltas changes nothing.
  const int64_t commits = FoldsOf(*worker).commits;
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { t.Notify(At(adding[0]->timestamp())); }), IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_GT(FoldsOf(*worker).commits, commits);
  EXPECT_THAT(folded, ElementsAre(10, 20, 25));
}

TEST_P(CombineQueueTest, ABoundedRunIsContinued) {
  const CombineQueue<int64_t> queue = Queue(10);
  const auto worker = NewWorker(queue);
  worker->Pause();
  for (int i = 0; i < 35; ++i) Add(queue, "a", 1);
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 35);
}

TEST_P(CombineQueueTest, ALateCommitIsCounted) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  Transaction late(cluster_);
  queue.Add(late, "a", 100);
  ASSERT_THAT(late.status(), IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // into another epoch
  Add(queue, "a", 1);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 1);
  ASSERT_TRUE(late.Commit().committed());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 101);
}

TEST_P(CombineQueueTest, EntriesAddedBeforeAWorkerStartsAreProcessed) {
  const CombineQueue<int64_t> queue = Queue();
  Add(queue, "a", 1);
  const auto worker = NewWorker(queue);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), std::nullopt);
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { return queue.NotifyAll(t); }), IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 1);
}

TEST_P(CombineQueueTest, ADeltaThatCannotBeCombinedIsQuarantined) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  Add(queue, "a", kMax);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  Add(queue, "a", 1);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  const auto quarantined = worker->ListQuarantine();
  ASSERT_THAT(quarantined, IsOk());
  ASSERT_EQ(quarantined->size(), 1U);
  EXPECT_THAT(quarantined->front().error, HasSubstr("does not fit"));
  EXPECT_EQ(Get(queue, "a"), kMax);
}

// A program uses the queue with another type.
TEST_P(CombineQueueTest, ADeltaOfAnotherTypeIsReported) {
  const CombineQueue<int64_t> queue = Queue();
  const CombineQueue<std::string> strings("counts", nullptr, {.buckets = 1});
  const auto worker = NewWorker(queue);
  Add(queue, "a", 1);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  Add(strings, "a", "one");
  EXPECT_THAT(queue.GetExact(*cluster_.GetSnapshot(), "a"), StatusIs(absl::StatusCode::kDataLoss));
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  const auto quarantined = worker->ListQuarantine();
  ASSERT_THAT(quarantined, IsOk());
  ASSERT_EQ(quarantined->size(), 1U);
  EXPECT_THAT(quarantined->front().error,
              HasSubstr("combine queue counts, key \"a\": not a value of the queue's type: \"one\""));
  EXPECT_EQ(Get(queue, "a"), 1);
}

// Regression: the first delta of a key was not passed to the function. It became the value, and spoiled all later ones.
TEST_P(CombineQueueTest, AFirstDeltaOfAnotherTypeIsNotAValue) {
  const CombineQueue<int64_t> queue = Queue();
  const CombineQueue<std::string> strings("counts", nullptr, {.buckets = 1});
  const auto worker = NewWorker(queue);
  Add(strings, "a", "many");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker->ListQuarantine(), IsOkAndHolds(::testing::SizeIs(1)));
  EXPECT_EQ(queue.Get(*cluster_.GetSnapshot(), "a").value(), std::nullopt);
}

// Otherwise an observer that returns void would acknowledge a change that it gave up on.
TEST_P(CombineQueueTest, AMalformedDeltaFailsAFunctionThatReturnsVoid) {
  const CombineQueue<int64_t> queue = Queue();
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) {
    t.Set({"counts", "v/folded", "value"}, "one");
    t.Set({"counts", "v/number", "value"}, "1");
  }),
              IsOk());
  const auto is_data_loss = StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not a value of the queue's type"));
  const std::map<std::string, std::function<absl::Status(ReadWrite & t)>> reads = {
      {"Get", [&](ReadWrite& t) { return queue.Get(t, "folded").status(); }},
      {"GetMany",
       [&](ReadWrite& t) {
         return queue.GetMany(t, {"number", "folded"}).status();
       }},
      {"GetExact", [&](ReadWrite& t) { return queue.GetExact(t, "folded").status(); }},
      {"ForEach", [&](ReadWrite& t) { return queue.ForEach(t, [](std::string_view, int64_t) {}); }},
  };
  for (const auto& [name, read] : reads) {
    EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { EXPECT_THAT(read(t), is_data_loss); }), is_data_loss) << name;
    // The caller decides what the error means.
    EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) {
      read(t).IgnoreError();
      return absl::OkStatus();
    }),
                IsOk())
        << name;
  }
}

TEST_P(CombineQueueTest, AFoldThatOverflowsGoesToQuarantine) {
  const CombineQueue<int64_t> queue = Queue();
  const auto worker = NewWorker(queue);
  Add(queue, "a", std::numeric_limits<int64_t>::max());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  Add(queue, "a", 1);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(worker->ListQuarantine(), IsOkAndHolds(::testing::SizeIs(1)));
  EXPECT_EQ(Get(queue, "a"), std::numeric_limits<int64_t>::max());
}

TEST_P(CombineQueueTest, AnErrorOfCombiningFailsAFunctionThatReturnsVoid) {
  const CombineQueue<int64_t> queue = Queue();
  Add(queue, "a", std::numeric_limits<int64_t>::max());
  Add(queue, "a", 1);
  const auto overflows = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { EXPECT_THAT(queue.GetExact(t, "a"), overflows); }), overflows);
}

TEST_P(CombineQueueTest, AMalformedJournalFailsAFunctionThatReturnsVoid) {
  const CombineQueue<int64_t> queue = Queue();
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) { t.Set({"counts", "j/what", "entries"}, "\001"); }), IsOk());
  const auto is_data_loss = StatusIs(absl::StatusCode::kDataLoss);
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { EXPECT_THAT(queue.NotifyAll(t), is_data_loss); }), is_data_loss);
}

// A minimum has no neutral value: no other value would be below zero.
TEST_P(CombineQueueTest, AQueueMayHaveNoNeutralValue) {
  const auto minimum = [](int64_t a, int64_t b) -> absl::StatusOr<int64_t> { return std::min(a, b); };
  const CombineQueue<int64_t> queue("counts", minimum, std::nullopt, {.buckets = 1});
  const auto worker = NewWorker(queue);
  Add(queue, "a", 5);
  Add(queue, "a", 3);
  Add(queue, "b", 0);
  Add(queue, "c", -1);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(queue.GetMany(*cluster_.GetSnapshot(), {"a", "b", "c", "d"}),
              IsOkAndHolds(ElementsAre(Optional(3), Optional(0), Optional(-1), std::nullopt)));
  Add(queue, "a", 0);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(Get(queue, "a"), 0);
}

TEST(SumTest, Adds) {
  EXPECT_EQ(Sum(1, 2).value(), 3);
  EXPECT_EQ(Sum(-1, 1).value(), 0);
  EXPECT_THAT(Sum(std::numeric_limits<int64_t>::max(), 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Sum(std::numeric_limits<int64_t>::min(), -1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SumTest, DeltasAreDecimals) {
  EXPECT_EQ(Codec<int64_t>::Decode("-12"), -12);
  for (const char* bad : {"", "x", "1 ", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(Codec<int64_t>::Decode(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace percolator
