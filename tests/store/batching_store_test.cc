// SPDX-License-Identifier: Apache-2.0

#include "src/store/batching_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/mutex.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr char kTable[] = "t";

std::vector<RowRead> ReadsOf(const std::vector<std::string>& rows, const std::string& table = kTable) {
  std::vector<RowRead> reads;
  for (const std::string& row : rows) reads.push_back({table, row, {{Family::kData, std::nullopt, {}}}});
  return reads;
}

std::vector<RowMutation> SetsOf(const std::vector<std::string>& rows, const std::string& value = "") {
  std::vector<RowMutation> sets;
  for (const std::string& row : rows) {
    sets.push_back({kTable, row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), value)}});
  }
  return sets;
}

// A remote store: remembers the rows of each request, and may take its time, hold requests back, or fail.
class DistantStore final : public ForwardingStore {
 public:
  DistantStore() : ForwardingStore(NewMemoryStore()) { EXPECT_THAT(CreateTable({kTable, ""}), IsOk()); }

  // Adds to every row read a cell whose timestamp is the event at which its request was sent.
  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override {
    const uint64_t sent = ++events;
    Travel(reads, &read_requests_);
    for (const RowRead& read : reads) {
      if (read.row == "bad") return failure;
    }
    absl::StatusOr<std::vector<Row>> rows = store()->Read(reads);
    if (!rows.ok()) return rows;
    for (Row& row : *rows) row.cells.push_back({Family::kNotify, "sent", Timestamp(sent), ""});
    return rows;
  }
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    Travel(mutations, &mutate_requests_);
    if (!failure.ok()) return std::vector<absl::StatusOr<MutateResult>>(mutations.size(), failure);
    return store()->Mutate(mutations);
  }
  // Timestamps are 1, 2, and so on.
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    std::vector<DrawnResult> results = Store::MutateThenDraw(mutations);
    for (DrawnResult& result : results) result.drawn = Timestamp(++drawn_);
    return results;
  }
  bool CanMutateTogether() const override { return false; }

  using Requests = std::vector<std::vector<std::string>>;
  Requests read_requests() {
    MutexLock lock(&mutex_);
    return read_requests_;
  }
  Requests mutate_requests() {
    MutexLock lock(&mutex_);
    return mutate_requests_;
  }
  int most_in_flight() {
    MutexLock lock(&mutex_);
    return most_in_flight_;
  }

  // From now on requests are held back until Let releases some of them, or all.
  void Hold() {
    MutexLock lock(&mutex_);
    let_through_ = 0;
  }
  void LetThrough(int more) {
    MutexLock lock(&mutex_);
    let_through_ += more;
    let_through_changed_.NotifyAll();
  }
  void LetAllThrough() { LetThrough(kAll); }

  std::atomic<uint64_t> events{0};
  std::chrono::microseconds latency{0};
  absl::Status failure;  // of a Read with the row "bad", and of every entry of a Mutate

 private:
  static constexpr int kAll = 1'000'000;

  template <typename Entry>
  void Travel(const std::vector<Entry>& entries, Requests* requests) {
    std::vector<std::string> rows;
    for (const Entry& entry : entries) rows.push_back(entry.row);
    {
      MutexLock lock(&mutex_);
      requests->push_back(std::move(rows));
      most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
      while (let_through_ == 0) let_through_changed_.Wait(&mutex_);
      --let_through_;
    }
    if (latency.count() > 0) std::this_thread::sleep_for(latency);
    MutexLock lock(&mutex_);
    --in_flight_;
  }

  std::atomic<uint64_t> drawn_{0};
  Mutex mutex_;
  CondVar let_through_changed_;
  int let_through_ ABSL_GUARDED_BY(mutex_) = kAll;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  Requests read_requests_ ABSL_GUARDED_BY(mutex_);
  Requests mutate_requests_ ABSL_GUARDED_BY(mutex_);
};

// The real runtime, which also counts the threads that wait.
class WatchedRuntime final : public Runtime {
 public:
  Duration Elapsed() override { return Real()->Elapsed(); }
  void Sleep(Duration duration) override { Real()->Sleep(duration); }
  uint64_t Random() override { return Real()->Random(); }
  void Start(std::function<void()> task) override { Real()->Start(std::move(task)); }
  std::unique_ptr<WaitQueue> NewWaitQueue() override { return std::make_unique<Queue>(&waiting); }

  std::atomic<int> waiting{0};

 private:
  class Queue final : public WaitQueue {
   public:
    explicit Queue(std::atomic<int>* waiting) : waiting_(waiting) {}
    void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) override {
      ++*waiting_;
      real_->Wait(mutex);
      --*waiting_;
    }
    void WaitFor(Mutex* mutex, Duration at_most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) override {
      real_->WaitFor(mutex, at_most);
    }
    void WakeOne() override { real_->WakeOne(); }
    void WakeAll() override { real_->WakeAll(); }

   private:
    std::atomic<int>* const waiting_;
    const std::unique_ptr<WaitQueue> real_ = Real()->NewWaitQueue();
  };
};

void WaitUntil(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Callers are started one by one, each when the previous one is on its way or waits, so that the sharing is known.
class BatchingStoreTest : public ::testing::Test {
 protected:
  ~BatchingStoreTest() override { Finish(); }

  void Make(const BatchingStoreOptions& options) {
    store_ = std::make_unique<BatchingStore>(Borrow<Store>(&distant_), &runtime_, options);
  }

  // Runs `call` in a thread of its own, up to the point where it has to wait for the store or for others.
  void Start(std::function<void()> call) {
    const size_t busy = Busy();
    threads_.emplace_back(std::move(call));
    WaitUntil([&] { return Busy() == busy + 1; });
  }
  // Runs threads that make several calls each, all starting at once, so that some of them certainly share.
  void RunTogether(int count, const std::function<void(int thread)>& run) {
    distant_.Hold();
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t) threads.emplace_back(run, t);
    WaitUntil([&] { return Busy() == static_cast<size_t>(count); });
    distant_.LetAllThrough();
    for (std::thread& thread : threads) thread.join();
  }
  void StartRead(const std::vector<std::string>& rows) {
    Start([this, rows] { EXPECT_THAT(store_->Read(ReadsOf(rows)), IsOk()); });
  }
  void StartSet(const std::vector<std::string>& rows, const std::string& value = "") {
    Start([this, rows, value] {
      for (const auto& result : store_->Mutate(SetsOf(rows, value))) EXPECT_THAT(result, IsOk());
    });
  }

  // Releases everything and waits for all callers.
  void Finish() {
    distant_.LetAllThrough();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  DistantStore distant_;
  WatchedRuntime runtime_;
  std::unique_ptr<BatchingStore> store_;

 private:
  // Calls that wait, plus all requests ever sent: one more with each call, while requests are held.
  size_t Busy() { return runtime_.waiting + distant_.read_requests().size() + distant_.mutate_requests().size(); }

  std::vector<std::thread> threads_;
};

TEST_F(BatchingStoreTest, LoneCallsAreSentAtOnce) {
  Make({});
  EXPECT_THAT(store_->Mutate(SetsOf({"a", "b"})), ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(store_->Read(ReadsOf({"a"})), IsOk());
  EXPECT_THAT(store_->Read(ReadsOf({"b", "c"})), IsOk());
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a", "b")));
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c")));
  EXPECT_EQ(runtime_.waiting, 0);
}

TEST_F(BatchingStoreTest, CallsMadeWhileARequestIsInFlightShareTheNextOne) {
  Make({.in_flight = 1});
  distant_.Hold();
  StartRead({"a"});
  StartRead({"b"});
  StartRead({"c", "d"});
  StartRead({});
  StartRead({"e"});
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a")));
  Finish();
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c", "d", "e")));
  EXPECT_EQ(distant_.most_in_flight(), 1);
}

TEST_F(BatchingStoreTest, MutationsShareRequestsToo) {
  Make({.in_flight = 1});
  distant_.Hold();
  StartSet({"a"});
  StartSet({"b", "c"});
  StartSet({"d"});
  Finish();
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c", "d")));
}

TEST_F(BatchingStoreTest, CallersOfASharedRequestGetTheirOwnTimestamps) {
  Make({.in_flight = 1});
  distant_.Hold();
  std::vector<DrawnResult> alone, first, second;
  const auto start = [this](const std::vector<std::string>& rows, std::vector<DrawnResult>* results) {
    Start([this, rows, results] { *results = store_->MutateThenDraw(SetsOf(rows)); });
  };
  start({"a"}, &alone);
  start({"b", "c"}, &first);
  start({"d"}, &second);
  Finish();
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c", "d")));
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(alone[0].drawn, Timestamp(1));
  EXPECT_EQ(first[0].drawn, Timestamp(2));
  EXPECT_EQ(first[1].drawn, Timestamp(3));
  EXPECT_EQ(second[0].drawn, Timestamp(4));
}

TEST_F(BatchingStoreTest, ReadsAndMutationsDoNotWaitForEachOther) {
  Make({.in_flight = 1});
  distant_.Hold();
  StartSet({"a"});
  StartRead({"a"});
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a")));
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a")));
}

TEST_F(BatchingStoreTest, AtTheLimitOfRequestsInFlightCallsGather) {
  Make({.in_flight = 2});
  distant_.Hold();
  StartRead({"a"});
  StartRead({"b"});
  StartRead({"c"});
  StartRead({"d"});
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b")));
  distant_.LetThrough(1);
  WaitUntil([&] { return distant_.read_requests().size() == 3; });
  EXPECT_THAT(distant_.read_requests().back(), ElementsAre("c", "d"));
  StartRead({"e"});
  EXPECT_EQ(distant_.read_requests().size(), 3) << "no third request is in flight";
  Finish();
  EXPECT_EQ(distant_.most_in_flight(), 2);
  EXPECT_EQ(distant_.read_requests().size(), 4);
}

// After a crowd, as many requests as before may be in flight.
TEST_F(BatchingStoreTest, TheNumberOfRequestsInFlightStaysTheSame) {
  Make({.in_flight = 2, .entries = 2});
  for (int round = 0; round < 3; ++round) {
    distant_.Hold();
    const size_t before = distant_.read_requests().size();
    for (int i = 0; i < 9; ++i) StartRead({"a"});
    EXPECT_EQ(distant_.read_requests().size(), before + 2);
    Finish();
    EXPECT_EQ(distant_.read_requests().size(), before + 2 + 4) << "the other seven, two at a time";
  }
  EXPECT_EQ(distant_.most_in_flight(), 2);
}

TEST_F(BatchingStoreTest, ABatchKeepsToTheLimitOnEntries) {
  Make({.in_flight = 1, .entries = 3});
  distant_.Hold();
  StartRead({"a"});
  StartRead({"b", "c"});
  StartRead({"d", "e"});            // would make four
  StartRead({"f"});                 // makes three
  StartRead({"g", "h", "i", "j"});  // exceeds the limit alone: sent alone, undivided
  StartRead({"k"});
  Finish();
  EXPECT_THAT(distant_.read_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c"), ElementsAre("d", "e", "f"),
                                                    ElementsAre("g", "h", "i", "j"), ElementsAre("k")));
}

TEST_F(BatchingStoreTest, ABatchKeepsToTheLimitOnBytes) {
  Make({.in_flight = 1, .bytes = 1000});
  distant_.Hold();
  StartSet({"a"});
  StartSet({"b"}, std::string(600, 'v'));
  StartSet({"c"}, std::string(600, 'v'));
  StartSet({"d"}, std::string(300, 'v'));
  StartSet({"e"}, std::string(5000, 'v'));
  StartSet({"f"});
  Finish();
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b"), ElementsAre("c", "d"),
                                                      ElementsAre("e"), ElementsAre("f")));
  distant_.Hold();
  StartRead({"a"});
  StartRead({std::string(900, 'r')});
  StartRead({std::string(900, 's')});
  Finish();
  EXPECT_EQ(distant_.read_requests().size(), 3);
}

TEST_F(BatchingStoreTest, AnErrorOfASharedReadGoesOnlyToItsCause) {
  for (const absl::Status& failure :
       {absl::DataLossError("a bad block"), absl::UnavailableError("that tablet is moving"),
        absl::FailedPreconditionError("that row is closed"), absl::ResourceExhaustedError("too much")}) {
    DistantStore::Requests before = distant_.read_requests();
    Make({.in_flight = 1});
    distant_.failure = failure;
    distant_.Hold();
    StartRead({"a"});
    StartRead({"b"});
    Start([&] { EXPECT_EQ(store_->Read(ReadsOf({"c", "bad"})).status(), failure); });
    Start([&] { EXPECT_THAT(store_->Read(ReadsOf({"d"}, "no such table")), StatusIs(absl::StatusCode::kNotFound)); });
    StartRead({"e"});
    Finish();
    DistantStore::Requests sent = distant_.read_requests();
    sent.erase(sent.begin(), sent.begin() + static_cast<int64_t>(before.size()));
    EXPECT_THAT(sent, UnorderedElementsAre(ElementsAre("a"), ElementsAre("b", "c", "bad", "d", "e"), ElementsAre("b"),
                                           ElementsAre("c", "bad"), ElementsAre("d"), ElementsAre("e")));
  }
}

TEST_F(BatchingStoreTest, AFailedReadOfALoneCallerIsNotRepeated) {
  Make({});
  distant_.failure = absl::UnavailableError("no answer");
  EXPECT_EQ(store_->Read(ReadsOf({"bad"})).status(), distant_.failure);
  EXPECT_EQ(distant_.read_requests().size(), 1);
}

TEST_F(BatchingStoreTest, EveryMutationHasItsOwnResult) {
  Make({.in_flight = 1});
  distant_.Hold();
  StartSet({"a"});
  StartSet({"b"});
  const Condition exists{Condition::Quantifier::kAll, {{Family::kData, "c", {}}}};
  Start([&] {
    const auto results = store_->Mutate({{kTable, "new", exists, {}}, {kTable, "b", exists, {}}});
    ASSERT_EQ(results.size(), 2);
    EXPECT_EQ(results[0].value(), MutateResult::kConditionFailed);
    EXPECT_EQ(results[1].value(), MutateResult::kApplied);
  });
  Start([&] {
    EXPECT_THAT(store_->Mutate({{"none", "c", {}, {}}, {kTable, "", {}, {}}}),
                ElementsAre(StatusIs(absl::StatusCode::kNotFound), StatusIs(absl::StatusCode::kInvalidArgument)));
  });
  StartSet({"d"});
  Finish();
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "new", "b", "c", "", "d")));
}

// The mutation may have been applied.
TEST_F(BatchingStoreTest, AMutationOfUnknownOutcomeIsNotRepeated) {
  Make({.in_flight = 1});
  distant_.failure = absl::UnavailableError("no answer");
  distant_.Hold();
  for (const std::string row : {"a", "b", "c"}) {
    Start([this, row] {
      EXPECT_THAT(store_->Mutate(SetsOf({row})), ElementsAre(StatusIs(absl::StatusCode::kUnavailable)));
    });
  }
  Finish();
  EXPECT_THAT(distant_.mutate_requests(), ElementsAre(ElementsAre("a"), ElementsAre("b", "c")));
}

// Each step of a caller requires its previous one; many callers do this on the same row at once.
TEST_F(BatchingStoreTest, MutationsOfOneCallerKeepTheirOrder) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 30;
  constexpr int kSteps = 5;
  Make({.in_flight = 2, .entries = 12});
  distant_.latency = std::chrono::microseconds(100);
  RunTogether(kThreads, [&](int t) {
    const std::string column = std::to_string(t);
    for (uint64_t first = 0; first < kCalls * kSteps; first += kSteps) {
      std::vector<RowMutation> steps;
      for (uint64_t n = first + 1; n <= first + kSteps; ++n) {
        Condition after;
        if (n > 1) after = {Condition::Quantifier::kAll, {{Family::kData, column, {Timestamp(n - 1), Timestamp(n)}}}};
        steps.push_back({kTable, "r", after, {Mutation::Set(Family::kData, column, Timestamp(n), "")}});
      }
      for (const auto& result : store_->Mutate(steps)) ASSERT_EQ(result.value(), MutateResult::kApplied);
    }
  });
  EXPECT_LT(distant_.mutate_requests().size(), kThreads * kCalls) << "nothing was shared";
}

// Each answer goes to its caller, from a request that was sent after the call was made, even when others read the same
// rows.
TEST_F(BatchingStoreTest, EveryReadIsAnsweredByARequestSentAfterIt) {
  constexpr int kThreads = 16;
  constexpr int kCalls = 100;
  Make({.in_flight = 2, .entries = 20});
  distant_.latency = std::chrono::microseconds(100);
  RunTogether(kThreads, [&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      std::vector<std::string> rows;
      for (int n = 0; n <= (t + i) % 3; ++n) rows.push_back(std::to_string((t + n) % 5));
      const uint64_t asked = ++distant_.events;
      const absl::StatusOr<std::vector<Row>> answer = store_->Read(ReadsOf(rows));
      ASSERT_THAT(answer, IsOk());
      ASSERT_EQ(answer->size(), rows.size());
      for (size_t n = 0; n < rows.size(); ++n) {
        ASSERT_EQ(answer->at(n).key, rows[n]);
        ASSERT_GT(answer->at(n).cells.at(0).timestamp.value(), asked);
      }
    }
  });
  EXPECT_LE(distant_.most_in_flight(), 2);
  EXPECT_LT(distant_.read_requests().size(), kThreads * kCalls) << "nothing was shared";
}

// Any number of new calls needs only one request besides those that are in flight.
TEST_F(BatchingStoreTest, ManyThreadsNeedFewRequests) {
  for (const int in_flight : {1, 2, 4, 8}) {
    Make({.in_flight = in_flight});
    distant_.Hold();
    const size_t before = distant_.read_requests().size();
    for (int t = 0; t < 64; ++t) StartRead({std::to_string(t)});
    Finish();
    EXPECT_EQ(distant_.read_requests().size(), before + static_cast<size_t>(in_flight) + 1);
  }
}

}  // namespace
}  // namespace percolator
