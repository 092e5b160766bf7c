// SPDX-License-Identifier: Apache-2.0

// Conformance: the safe point of garbage collection (G4).

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

Timestamp SafePointOf(Store* store) {
  const absl::StatusOr<Timestamp> ts = store->SafePoint();
  EXPECT_THAT(ts, IsOk());
  return ts.value_or(Timestamp::Infinity());
}

TEST_P(StoreTest, TheSafePointIsZeroAtFirstAndOnlyGrows) {
  EXPECT_EQ(SafePointOf(store_.get()), Timestamp(0));
  EXPECT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  EXPECT_EQ(SafePointOf(store_.get()), Timestamp(10));
  EXPECT_THAT(store_->RaiseSafePoint(Timestamp(7)), IsOk());
  EXPECT_EQ(SafePointOf(store_.get()), Timestamp(10)) << "a smaller one changes nothing";
  EXPECT_THAT(store_->RaiseSafePoint(Timestamp(11)), IsOk());
  EXPECT_EQ(SafePointOf(store_.get()), Timestamp(11));
}

TEST_P(StoreTest, NoLockIsSetAtOrBelowTheSafePoint) {
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  for (const uint64_t ts : {1, 10}) {
    EXPECT_THAT(Mutate("r", {Set("c", 20, "d"), Set("c", ts, "l", Family::kLock)}),
                StatusIs(absl::StatusCode::kOutOfRange));
  }
  EXPECT_EQ(Scan(), "") << "a refused row mutation has no effect";
  Apply("r", {Set("c", 11, "l", Family::kLock)});
  EXPECT_EQ(Read("r"), "lock:c@11=l");
}

TEST_P(StoreTest, TheSafePointRefusesNothingButLocks) {
  Apply("r", {Set("c", 5, "old", Family::kLock)});
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  EXPECT_EQ(Read("r"), "lock:c@5=old") << "an older lock stays until it is resolved";
  Apply("r", {Set("c", 5, "d"), Set("c", 6, "w", Family::kWrite), Set("c", 7, "n", Family::kNotify),
              EraseAt("c", 5, Family::kLock)});
  EXPECT_EQ(Read("r"), "data:c@5=d write:c@6=w notify:c@7=n");
}

TEST_P(StoreTest, TheSafePointRefusesEntriesOneByOne) {
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  const auto results = store_->Mutate({{"t", "a", {}, {Set("c", 10, "", Family::kLock)}},
                                       {"t", "b", {}, {Set("c", 11, "", Family::kLock)}},
                                       {"t", "a", {}, {Set("c", 12, "", Family::kLock)}}});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(results[1], IsOk());
  EXPECT_THAT(results[2], IsOk());
  EXPECT_EQ(Scan(), "a{lock:c@12=} b{lock:c@11=}");
}

// Garbage collection relies on this: after RaiseSafePoint has returned, no new lock at or below it appears.
TEST_P(StoreTest, OnceTheSafePointIsRaisedNoLockAppearsBelowIt) {
  constexpr int kWriters = 3;
  constexpr uint64_t kRaises = 30;
  std::atomic<uint64_t> now = 1;
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (int id = 0; id < kWriters; ++id) {
    writers.emplace_back([&, id] {
      const std::string column = std::to_string(id);
      for (uint64_t attempt = 0; !done; ++attempt) {
        const Mutation lock = Set(column, now, std::to_string(attempt), Family::kLock);
        const absl::Status status = Mutate("r", {lock}).status();
        ASSERT_TRUE(status.ok() || absl::IsOutOfRange(status)) << status;
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // otherwise one thread could keep the mutex
      }
    });
  }
  for (uint64_t i = 0; i < kRaises && !HasFailure(); ++i) {
    const Timestamp safe_point(now.fetch_add(1));
    ASSERT_THAT(store_->RaiseSafePoint(safe_point), IsOk());
    const std::vector<Selector> below = {Columns(Family::kLock, TimestampRange::UpTo(safe_point))};
    const std::string at_once = Read("r", below);
    std::this_thread::yield();
    EXPECT_EQ(Read("r", below), at_once);
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
}

TEST_P(StoreReopenTest, TheSafePointSurvives) {
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(10)), IsOk());
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(12)), IsOk());
  ASSERT_THAT(store_->Close(), IsOk());
  EXPECT_THAT(store_->RaiseSafePoint(Timestamp(13)), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->SafePoint(), StatusIs(absl::StatusCode::kFailedPrecondition));
  Open({});
  EXPECT_EQ(SafePointOf(store_.get()), Timestamp(12));
  EXPECT_THAT(Mutate("r", {Set("c", 12, "", Family::kLock)}), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace percolator
