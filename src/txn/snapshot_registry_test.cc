// SPDX-License-Identifier: Apache-2.0

#include "src/txn/snapshot_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace percolator {
namespace {

TEST(SnapshotRegistryTest, OldestIsInfinityWithoutSnapshots) {
  EXPECT_EQ(SnapshotRegistry().Oldest(), Timestamp::Infinity());
}

TEST(SnapshotRegistryTest, ReturnsTheOldestSnapshot) {
  SnapshotRegistry registry;
  const size_t nine = registry.Add(Timestamp(9));
  const size_t seven = registry.Add(Timestamp(7));
  const size_t eight = registry.Add(Timestamp(8));
  EXPECT_EQ(registry.Oldest(), Timestamp(7));
  registry.Remove(seven, Timestamp(7));
  EXPECT_EQ(registry.Oldest(), Timestamp(8));
  registry.Remove(nine, Timestamp(9));
  registry.Remove(eight, Timestamp(8));
  EXPECT_EQ(registry.Oldest(), Timestamp::Infinity());
}

// Two snapshots may have the same timestamp; each counts until it is closed.
TEST(SnapshotRegistryTest, CountsTheSameTimestampTwice) {
  SnapshotRegistry registry;
  const size_t first = registry.Add(Timestamp(7));
  const size_t second = registry.Add(Timestamp(7));
  registry.Remove(first, Timestamp(7));
  EXPECT_EQ(registry.Oldest(), Timestamp(7));
  registry.Remove(second, Timestamp(7));
  EXPECT_EQ(registry.Oldest(), Timestamp::Infinity());
}

TEST(SnapshotRegistryTest, HoldsMoreSnapshotsThanSlots) {
  SnapshotRegistry registry;
  std::vector<std::pair<size_t, Timestamp>> open;
  bool overflowed = false;
  for (uint64_t i = 0; i < 3 * SnapshotRegistry::kSlots; ++i) {
    const Timestamp ts(10'000 - i);
    open.emplace_back(registry.Add(ts), ts);
    overflowed |= open.back().first == SnapshotRegistry::kOverflow;
    ASSERT_EQ(registry.Oldest(), ts);
  }
  EXPECT_TRUE(overflowed);
  for (; !open.empty(); open.pop_back()) {
    ASSERT_EQ(registry.Oldest(), open.back().second);
    registry.Remove(open.back().first, open.back().second);
  }
  EXPECT_EQ(registry.Oldest(), Timestamp::Infinity());
}

TEST(SnapshotRegistryTest, OverflowHoldsTheSameTimestampAsOftenAsItWasAdded) {
  SnapshotRegistry registry;
  std::vector<size_t> slots;
  for (int i = 0; i < 100; ++i)
    slots.push_back(registry.Add(Timestamp(7)));  // more than the slots that are tried before the set
  EXPECT_EQ(slots.back(), SnapshotRegistry::kOverflow);
  for (const size_t slot : slots) {
    ASSERT_EQ(registry.Oldest(), Timestamp(7));
    registry.Remove(slot, Timestamp(7));
  }
  EXPECT_EQ(registry.Oldest(), Timestamp::Infinity());
}

// G2: while other snapshots are opened and closed, Oldest is never above one that stays open.
TEST(SnapshotRegistryTest, OpenSnapshotsAreSeenDespiteOtherThreads) {
  SnapshotRegistry registry;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&registry, &stop, t] {
      for (uint64_t i = 0; !stop; ++i) {
        std::vector<std::pair<size_t, Timestamp>> open;
        for (uint64_t n = 0; n < 500; ++n) {
          const Timestamp ts(1'000'000 + i * 500 + n + t);
          open.emplace_back(registry.Add(ts), ts);
        }
        for (const auto& [slot, ts] : open) registry.Remove(slot, ts);
      }
    });
  }
  for (uint64_t i = 0; i < 300; ++i) {
    const Timestamp mine(500 + i);
    const size_t slot = registry.Add(mine);
    for (int look = 0; look < 5; ++look) ASSERT_EQ(registry.Oldest(), mine);
    registry.Remove(slot, mine);
    ASSERT_GE(registry.Oldest(), Timestamp(1'000'000));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registry.Oldest(), Timestamp::Infinity());
}

}  // namespace
}  // namespace percolator
