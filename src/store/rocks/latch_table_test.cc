// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/latch_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace percolator {
namespace {

// Long enough for a thread that does not wait to finish.
constexpr std::chrono::milliseconds kLatchWhile(30);

TEST(LatchTableTest, AStripeHasOneHolderAtATime) {
  LatchTable table;
  int unguarded = 0;
  const auto work = [&] {
    for (int i = 0; i < 5000; ++i) {
      LatchTable::Guard guard(&table, {7});
      ++unguarded;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unguarded, 20'000);
}

// In any order, and with repetitions.
TEST(LatchTableTest, OverlappingSetsOfStripesDoNotDeadlock) {
  LatchTable table;
  std::vector<int> unguarded(8);
  const auto work = [&](int seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 3000; ++i) {
      const uint32_t a = random() % 8, b = random() % 8;
      // There are 64 lots: stripes that are 64 apart share one.
      LatchTable::Guard guard(&table, {a * 64, b * 64, a * 64});
      ++unguarded[a];
      if (a != b) ++unguarded[b];
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (int n : unguarded) sum += n;
  EXPECT_GE(sum, 4 * 3000);
  EXPECT_LE(sum, 2 * 4 * 3000);
}

// Even if another thread takes the latch again as soon as it is free.
TEST(LatchTableTest, AWaiterGetsTheLatchAfterABoundedNumberOfOthers) {
  LatchTable table;
  std::atomic<bool> done = false;
  std::atomic<int> turns = 0;
  std::thread greedy([&] {
    while (!done) {
      LatchTable::Guard guard(&table, {3});
      ++turns;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  while (turns == 0) std::this_thread::yield();
  std::vector<int> others;
  for (int i = 0; i < 21; ++i) {
    const int before = turns;
    LatchTable::Guard guard(&table, {3});
    others.push_back(turns - before);
  }
  done = true;
  greedy.join();
  // The median: on a busy machine this thread may be delayed before it begins to wait.
  std::nth_element(others.begin(), others.begin() + 10, others.end());
  EXPECT_LE(others[10], 6);
}

TEST(LatchTableTest, TheCountChangesWhenAWriteBeginsOrEnds) {
  LatchTable table;
  const uint64_t before = table.Count(5);
  EXPECT_TRUE(LatchTable::IsQuiet(before));
  {
    LatchTable::Guard guard(&table, {5});
    EXPECT_TRUE(table.StableSince(5, before)) << "a held latch is not a write";
    guard.BeginWrite();
    EXPECT_FALSE(table.StableSince(5, before));
    EXPECT_FALSE(LatchTable::IsQuiet(table.Count(5)));
    EXPECT_FALSE(LatchTable::IsClosed(table.Count(5)));
    guard.EndWrite();
  }
  EXPECT_FALSE(table.StableSince(5, before));
  EXPECT_TRUE(LatchTable::IsQuiet(table.Count(5)));
  EXPECT_TRUE(table.StableSince(6, before)) << "another stripe";
}

TEST(LatchTableTest, WaitUntilOpenWaitsForAClosedStripe) {
  LatchTable table;
  std::optional<LatchTable::Guard> guard(std::in_place, &table, LatchTable::Stripes{9});
  guard->Close();
  ASSERT_TRUE(LatchTable::IsClosed(table.Count(9)));
  std::atomic<int> open = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back([&] { open += table.WaitUntilOpen(9) ? 1 : 100; });
  std::this_thread::sleep_for(kLatchWhile);
  EXPECT_EQ(open, 0);
  EXPECT_TRUE(table.WaitUntilOpen(8)) << "another stripe";
  guard->Open();
  guard.reset();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(open, 3);
}

// WaitUntilOpen waits for the write that closed the stripe, not for later ones.
TEST(LatchTableTest, WaitUntilOpenEndsThoughTheStripeIsClosedAgain) {
  LatchTable table;
  std::atomic<bool> done = false;
  std::atomic<int> turns = 0;
  std::thread writer([&] {
    while (!done) {
      LatchTable::Guard guard(&table, {9});
      guard.Close();
      ++turns;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      guard.Open();
    }
  });
  while (turns == 0) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(table.WaitUntilOpen(9));
  done = true;
  writer.join();
}

TEST(LatchTableTest, WaitUntilOpenReportsAStripeThatStaysClosed) {
  LatchTable table;
  std::optional<LatchTable::Guard> guard(std::in_place, &table, LatchTable::Stripes{9});
  guard->Close();
  std::atomic<bool> reported = false;
  std::thread reader([&] {
    EXPECT_FALSE(table.WaitUntilOpen(9));
    reported = true;
  });
  std::this_thread::sleep_for(kLatchWhile);
  EXPECT_FALSE(reported);
  guard.reset();
  reader.join();
  EXPECT_FALSE(table.WaitUntilOpen(9));
  const LatchTable::Guard again(&table, {9});  // the latch is free
}

TEST(LatchTableTest, AnyThreadMayReleaseTheLatches) {
  LatchTable table;
  LatchTable::Guard guard(&table, {1, 2});
  std::atomic<bool> taken = false;
  std::thread other([&] {
    const LatchTable::Guard mine(&table, {2, 1});
    taken = true;
  });
  std::this_thread::sleep_for(kLatchWhile);
  EXPECT_FALSE(taken);
  std::thread([&] { guard.Release(); }).join();
  other.join();
}

TEST(LatchTableTest, PassThroughWaitsForAllHolders) {
  LatchTable table;
  std::optional<LatchTable::Guard> guard(std::in_place, &table, LatchTable::Stripes{LatchTable::kStripes - 1});
  std::atomic<bool> passed = false;
  std::thread other([&] {
    table.PassThrough();
    passed = true;
  });
  std::this_thread::sleep_for(kLatchWhile);
  EXPECT_FALSE(passed);
  guard.reset();
  other.join();
}

// Threads that take, close and wait run at the same time.
TEST(LatchTableTest, EveryWaiterIsWoken) {
  LatchTable table;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 3000; ++n) {
        LatchTable::Guard guard(&table, {1, 65});
        guard.Close();
        guard.Open();
      }
    });
    threads.emplace_back([&] {
      while (!done) EXPECT_TRUE(table.WaitUntilOpen(65));
    });
  }
  for (size_t i = 0; i < threads.size(); i += 2) threads[i].join();
  done = true;
  for (size_t i = 1; i < threads.size(); i += 2) threads[i].join();
}

}  // namespace
}  // namespace percolator
