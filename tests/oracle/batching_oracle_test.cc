// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/batching_oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "percolator/spi/mutex.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

// A slow, distant oracle, which remembers at which event each request was sent.
class DistantOracle : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    EXPECT_EQ(in_flight++, 0) << "two requests at once";
    const uint64_t sent = ++events;
    do std::this_thread::sleep_for(std::chrono::microseconds(200));
    while (events < answers_from);
    MutexLock lock(&mutex_);
    const uint64_t first = next_;
    next_ += count;
    sent_at_[first] = sent;
    ++requests;
    most = std::max(most.load(), count);
    --in_flight;
    if (failing) return absl::UnavailableError("no answer");
    return Timestamp(first);
  }

  // The event at which the request that returned this timestamp was sent.
  uint64_t SentAt(Timestamp ts) {
    MutexLock lock(&mutex_);
    return std::prev(sent_at_.upper_bound(ts.value()))->second;
  }

  std::atomic<uint64_t> events{0};
  uint64_t answers_from = 0;  // the event before which it does not answer
  std::atomic<int> in_flight{0};
  std::atomic<int> requests{0};
  std::atomic<uint32_t> most{0};  // the max number of timestamps in one request
  std::atomic<bool> failing{false};

 private:
  Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, uint64_t> sent_at_ ABSL_GUARDED_BY(mutex_);
};

TEST(BatchingOracleTest, ALoneCallerGetsItsOwnRequest) {
  DistantOracle distant;
  BatchingOracle oracle(&distant);
  EXPECT_EQ(oracle.GetTimestamp().value(), Timestamp(1));
  EXPECT_EQ(oracle.GetTimestamps(5).value(), Timestamp(2));
  EXPECT_EQ(oracle.GetTimestamp().value(), Timestamp(7));
  EXPECT_EQ(distant.requests, 3);
}

// Checks O1 and O5 for every timestamp, with one request at a time and many callers to a request.
TEST(BatchingOracleTest, ThreadsShareOnlyRequestsSentAfterTheirCalls) {
  constexpr int kThreads = 16;
  constexpr int kCalls = 200;
  DistantOracle distant;
  distant.answers_from = kThreads + 1;  // after all have begun
  BatchingOracle oracle(&distant);
  std::vector<std::vector<Timestamp>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const uint64_t asked = ++distant.events;
        const uint32_t count = 1 + (t + i) % 3;
        const absl::StatusOr<Timestamp> first = oracle.GetTimestamps(count);
        ASSERT_THAT(first, IsOk());
        ASSERT_GT(distant.SentAt(*first), asked);
        for (uint32_t n = 0; n < count; ++n) drawn[t].push_back(Timestamp(first->value() + n));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Timestamp> all;
  for (const std::vector<Timestamp>& one : drawn) {
    EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
    all.insert(all.end(), one.begin(), one.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_LT(distant.requests, kThreads * kCalls) << "nothing was shared";
}

TEST(BatchingOracleTest, AnErrorReachesAllCallersOfTheRequestAndTheNextCallIsANewOne) {
  DistantOracle distant;
  BatchingOracle oracle(&distant);
  distant.failing = true;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { failed += absl::IsUnavailable(oracle.GetTimestamp().status()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 8);
  distant.failing = false;
  EXPECT_THAT(oracle.GetTimestamp(), IsOk());
}

// Eight threads repeatedly ask for `count` timestamps each.
void DrawOften(BatchingOracle* oracle, uint32_t count) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([=] {
      for (int i = 0; i < 20; ++i) ASSERT_THAT(oracle->GetTimestamps(count), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(BatchingOracleTest, ASharedRequestIsWithinTheLimitOfAServer) {
  DistantOracle distant;
  BatchingOracle oracle(&distant);
  DrawOften(&oracle, BatchingOracle::kMaxShared / 3);
  EXPECT_LE(distant.most, BatchingOracle::kMaxShared);
  EXPECT_LT(distant.requests, 8 * 20) << "some were shared";
}

TEST(BatchingOracleTest, LargeRequestsAreSentAlone) {
  DistantOracle distant;
  BatchingOracle oracle(&distant);
  EXPECT_THAT(oracle.GetTimestamps(0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(oracle.GetTimestamps(Oracle::kMaxCount + 1), StatusIs(absl::StatusCode::kInvalidArgument));
  DrawOften(&oracle, Oracle::kMaxCount / 2 + 1);
  EXPECT_EQ(distant.most, Oracle::kMaxCount / 2 + 1);
  EXPECT_EQ(distant.requests, 8 * 20);
}

}  // namespace
}  // namespace percolator
