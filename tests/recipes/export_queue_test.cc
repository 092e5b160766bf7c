// SPDX-License-Identifier: Apache-2.0

// ExportQueue: every message arrives, in order, whatever fails and how often.

#include "percolator/export_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/store.h"
#include "src/recipes/journal.h"
#include "tests/harness/eventually.h"
#include "tests/harness/hooked_store.h"
#include "tests/recipes/queue_fixture.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An outside system as percolator/export_queue.h requires it: it keeps the largest number of each shard, and ignores
// numbers that are not larger.
class Outside {
 public:
  absl::Status Deliver(const Export& entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++calls_;
    if (fail_every_ > 0 && calls_ % fail_every_ == 0) return absl::InternalError("not now");
    uint64_t& largest = largest_[entry.shard];
    if (entry.sequence <= largest) return absl::OkStatus();
    EXPECT_EQ(entry.sequence, largest + 1) << "a number was left out";
    largest = entry.sequence;
    received_.push_back(entry);
    // The work is done, but the answer is lost.
    if (forget_every_ > 0 && calls_ % forget_every_ == 0) return absl::UnavailableError("the answer is lost");
    return absl::OkStatus();
  }
  DeliverFunction function() {
    return [this](const Export& entry) { return Deliver(entry); };
  }
  void FailEvery(int calls) {
    std::lock_guard<std::mutex> lock(mutex_);
    fail_every_ = calls;
  }
  void ForgetEvery(int calls) { forget_every_ = calls; }
  int calls() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

  std::vector<std::string> PayloadsOf(const std::string& key) const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> payloads;
    for (const Export& entry : received_) {
      if (entry.key == key) payloads.push_back(entry.payload);
    }
    return payloads;
  }
  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return received_.size();
  }

 private:
  mutable std::mutex mutex_;
  int calls_ = 0;
  int fail_every_ = 0;
  int forget_every_ = 0;
  std::map<uint32_t, uint64_t> largest_;
  std::vector<Export> received_;
};

class ExportQueueTest : public QueueTest {
 protected:
  ExportQueueTest() {
    EXPECT_THAT(ExportQueue("exports").EnsureTable(cluster_), IsOk());
    EXPECT_THAT(cluster_.CreateTable("accounts"), IsOk());
  }

  std::unique_ptr<Worker> NewWorker(const ExportQueue& queue, const WorkerOptions& options = Quick()) {
    return StartWorker([&](Worker& worker) { queue.Attach(worker, outside_.function()); }, options);
  }
  // Adds one to an account, and exports the new balance.
  absl::Status Deposit(const ExportQueue& queue, const std::string& account) {
    return cluster_.Transact([&](ReadWrite& t) -> absl::Status {
      const auto balance = t.Get({"accounts", account, "balance"});
      if (!balance.ok()) return balance.status();
      const std::string next = std::to_string(std::stoi(balance->value_or("0")) + 1);
      t.Set({"accounts", account, "balance"}, next);
      queue.Add(t, account, next);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<ExportQueue::Progress> ProgressOf(const ExportQueue& queue, uint32_t shard) {
    return queue.GetProgress(*cluster_.GetSnapshot(), shard);
  }
  // The number of rows of the queue with this prefix.
  size_t Rows(const std::string& prefix) {
    size_t count = 0;
    for (const absl::StatusOr<ScannedRow>& row :
         cluster_.GetSnapshot()->Scan("exports", {.rows = RowRange::Prefix(prefix)})) {
      EXPECT_THAT(row, IsOk());
      ++count;
    }
    return count;
  }
  std::optional<std::string> Get(const std::string& row, const std::string& column) {
    return cluster_.GetSnapshot()->Get({"exports", row, column}).value();
  }

  Outside outside_;
};

INSTANTIATE_TEST_SUITE_P(Commit, ExportQueueTest, ::testing::Bool(), CommitName);

std::vector<std::string> UpTo(int last) {
  std::vector<std::string> numbers;
  for (int i = 1; i <= last; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

// Several workers, an outside system that fails and loses answers: each account's balances arrive in order, once.
TEST_P(ExportQueueTest, MessagesArriveInOrder) {
  outside_.FailEvery(7);
  outside_.ForgetEvery(11);
  const ExportQueue queue("exports", {.shards = 2, .batch = 5});
  const auto one = NewWorker(queue);
  const auto two = NewWorker(queue);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      for (int i = 0; i < 50; ++i) EXPECT_THAT(Deposit(queue, "account" + std::to_string((n + i) % 4)), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(one->WaitUntilIdle(kLong), IsOk());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(outside_.PayloadsOf("account" + std::to_string(i)), UpTo(50));
  EXPECT_EQ(outside_.size(), 200U);
  EXPECT_EQ(Rows("j/"), 0U);  // nothing is left
  EXPECT_EQ(Rows("s/"), 0U);
  uint64_t delivered = 0;
  for (uint32_t shard = 0; shard < 2; ++shard) {
    const auto progress = ProgressOf(queue, shard);
    ASSERT_THAT(progress, IsOk());
    EXPECT_EQ(progress->numbered, progress->delivered);
    delivered += progress->delivered;
  }
  EXPECT_EQ(delivered, 200U);
}

TEST_P(ExportQueueTest, MessagesOfATransactionKeepTheirOrder) {
  const ExportQueue queue("exports", {.batch = 2});
  const auto worker = NewWorker(queue);
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) {
    for (const std::string& number : UpTo(7)) queue.Add(t, "key", number);
    for (const std::string& number : UpTo(5)) queue.Add(t, number);
    EXPECT_THAT(t.status(), IsOk());
  }),
              IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.PayloadsOf("key"), UpTo(7));
  EXPECT_EQ(outside_.PayloadsOf(""), UpTo(5));
}

TEST_P(ExportQueueTest, UncommittedMessagesAreNotDelivered) {
  const ExportQueue queue("exports");
  const auto worker = NewWorker(queue);
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) -> absl::Status {
    queue.Add(t, "a", "1");
    EXPECT_THAT(t.status(), IsOk());
    return absl::CancelledError("changed my mind");
  }),
              StatusIs(absl::StatusCode::kCancelled));
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.calls(), 0);
}

// As docs/format.md specifies.
TEST_P(ExportQueueTest, RowsHaveTheDocumentedBytes) {
  const ExportQueue queue("exports", {.shards = 1});
  const Timestamp ts = Add(queue, std::string("k\0", 2), "payload");
  const std::string row = "j/00000000/" + Hex(ts.value());
  EXPECT_EQ(Get(row, "entries"), std::string("\1k\0\xff\0\1payload\0\1", 15));
  outside_.FailEvery(1);  // so that numbered entries stay
  const auto worker = NewWorker(queue);
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { return queue.NotifyAll(t); }), IsOk());
  ASSERT_TRUE(Eventually([&] { return outside_.calls() > 0; }));
  EXPECT_EQ(Get(row, "entries"), std::nullopt);
  EXPECT_EQ(Get("s/00000000/0000000000000001", "entry"), std::string("k\0\xff\0\1payload", 12));
  EXPECT_EQ(Get("q/00000000", "numbered"), "1");
}

TEST(JournalTest, NumbersInRowKeysHaveAllTheirDigits) {
  EXPECT_EQ(Hex(uint32_t{0xab}), "000000ab");
  EXPECT_EQ(Hex(uint64_t{0xab}), "00000000000000ab");
}

TEST_P(ExportQueueTest, TwoWorkersNumberTheSameEntriesOnce) {
  absl::StatusOr<Parts> parts = OpenParts("memory:");
  ASSERT_THAT(parts, IsOk());
  const auto store = std::make_shared<HookedStore>(parts->store);
  parts->store = store;
  // Holds up the first commit that numbers entries. Its transaction has read the entries by then.
  std::atomic<bool> holds = false;
  std::atomic<bool> let_go = false;
  store->before_mutate = [&](const std::vector<RowMutation>& rows) {
    const bool numbers =
        std::any_of(rows.begin(), rows.end(), [](const RowMutation& row) { return row.row.starts_with("s/"); });
    if (!numbers || holds.exchange(true)) return;
    EXPECT_TRUE(Eventually([&] { return let_go.load(); }));
  };
  cluster_ = Assemble(*parts, Options()).value();
  const ExportQueue queue("exports", {.shards = 1});
  ASSERT_THAT(queue.EnsureTable(cluster_), IsOk());
  const auto one = NewWorker(queue, WithoutClaims());
  Add(queue, "a", "1");
  ASSERT_TRUE(Eventually([&] { return holds.load(); }));
  one->Pause();  // it takes no work after this run
  const auto two = NewWorker(queue, WithoutClaims());
  ASSERT_TRUE(Eventually([&] { return outside_.size() == 1; }));
  EXPECT_EQ(ProgressOf(queue, 0)->numbered, 1U);
  let_go = true;
  ASSERT_TRUE(Eventually([&] { return MetricsOf(*one, "number-exports").conflicts == 1; }));
  one->Resume();
  ASSERT_THAT(one->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(ProgressOf(queue, 0)->numbered, 1U);
  EXPECT_EQ(outside_.size(), 1U);
}

// The first message is in an epoch without a notification. A run for the epoch of the second must not overtake it.
TEST_P(ExportQueueTest, MessagesKeepTheirOrderAcrossEpochs) {
  const ExportQueue queue("exports", {.shards = 1});
  Add(queue, "a", "1");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const auto worker = NewWorker(queue);
  Add(queue, "a", "2");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(outside_.PayloadsOf("a"), ElementsAre("1", "2"));
}

// A worker may die between a delivery and its commit. Here the commit fails because of another write.
TEST_P(ExportQueueTest, AnUnacknowledgedDeliveryIsRepeated) {
  const ExportQueue queue("exports", {.shards = 1});
  const auto deliver = [&](const Export& entry) {
    EXPECT_EQ(ProgressOf(queue, 0)->delivered, 0U);
    absl::Status delivered = outside_.Deliver(entry);
    if (outside_.calls() == 1) {
      EXPECT_THAT(cluster_.Transact([](ReadWrite& t) { t.Set({"exports", "q/00000000", "delivered"}, "0"); }), IsOk());
    }
    return delivered;
  };
  const auto worker = StartWorker([&](Worker& w) { queue.Attach(w, deliver); });
  Add(queue, "a", "1");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(MetricsOf(*worker, "deliver-exports").conflicts, 1);
  EXPECT_EQ(outside_.calls(), 2);
  EXPECT_THAT(outside_.PayloadsOf("a"), ElementsAre("1"));
  EXPECT_EQ(ProgressOf(queue, 0)->delivered, 1U);
  // Nothing is left for another run.
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) { t.Notify({"exports", "q/00000000", "deliver"}); }), IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.calls(), 2);
}

TEST_P(ExportQueueTest, AMessageOfALateCommitArrives) {
  const ExportQueue queue("exports", {.shards = 1, .batch = 2, .longest_transaction = Duration(0)});
  const auto worker = NewWorker(queue);
  Transaction late(cluster_);
  for (const std::string& number : UpTo(5)) queue.Add(late, "late", number);
  ASSERT_THAT(late.status(), IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  Add(queue, "a", "1");
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(outside_.PayloadsOf("a"), ElementsAre("1"));
  ASSERT_TRUE(late.Commit().committed());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.PayloadsOf("late"), UpTo(5));
}

TEST_P(ExportQueueTest, AnotherWorkerContinues) {
  const ExportQueue queue("exports", {.shards = 1, .batch = 3});
  {
    const auto worker = NewWorker(queue);
    for (int i = 0; i < 30; ++i) ASSERT_THAT(Deposit(queue, "a"), IsOk());
  }  // at any point of its work
  ASSERT_THAT(Deposit(queue, "a"), IsOk());
  const auto worker = NewWorker(queue);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.PayloadsOf("a"), UpTo(31));
}

// Every delivery of a batch has an error, but in the end all messages arrive.
TEST_P(ExportQueueTest, AnOutsideSystemMayFailInEveryBatch) {
  outside_.FailEvery(3);
  const ExportQueue queue("exports", {.shards = 1, .batch = 10});
  const auto worker = NewWorker(queue);
  worker->Pause();
  for (int i = 0; i < 30; ++i) ASSERT_THAT(Deposit(queue, "a"), IsOk());
  worker->Resume();
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.PayloadsOf("a"), UpTo(30));
}

// Delivery is retried forever, without quarantine.
TEST_P(ExportQueueTest, AnOutsideSystemMayBeAwayForLong) {
  const ExportQueue queue("exports", {.shards = 1});
  outside_.FailEvery(1);
  const auto worker = NewWorker(queue);
  Add(queue, "a", "1");
  EXPECT_TRUE(Eventually([&] { return outside_.calls() >= 40; }));
  const auto quarantined = worker->ListQuarantine();
  ASSERT_THAT(quarantined, IsOk());
  EXPECT_THAT(*quarantined, IsEmpty());
  outside_.FailEvery(0);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(outside_.PayloadsOf("a"), ElementsAre("1"));
}

TEST_P(ExportQueueTest, EntriesAddedBeforeAWorkerStartsAreProcessed) {
  const ExportQueue queue("exports");
  Add(queue, "a", "1");
  const auto worker = NewWorker(queue);
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_EQ(outside_.size(), 0U);
  ASSERT_THAT(cluster_.Transact([&](ReadWrite& t) { return queue.NotifyAll(t); }), IsOk());
  ASSERT_THAT(worker->WaitUntilIdle(kLong), IsOk());
  EXPECT_THAT(outside_.PayloadsOf("a"), ElementsAre("1"));
}

// Otherwise an observer that returns void would acknowledge a change that it gave up on.
TEST_P(ExportQueueTest, MalformedCellsFailAFunctionThatReturnsVoid) {
  const ExportQueue queue("exports");
  ASSERT_THAT(cluster_.Transact([](ReadWrite& t) {
    t.Set({"exports", "q/00000000", "numbered"}, "many");
    t.Set({"exports", "j/what", "entries"}, "\001");
  }),
              IsOk());
  const auto is_data_loss = StatusIs(absl::StatusCode::kDataLoss);
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { EXPECT_THAT(queue.GetProgress(t, 0), is_data_loss); }),
              is_data_loss);
  EXPECT_THAT(cluster_.Transact([&](ReadWrite& t) { EXPECT_THAT(queue.NotifyAll(t), is_data_loss); }), is_data_loss);
}

}  // namespace
}  // namespace percolator
