// SPDX-License-Identifier: Apache-2.0

#include "src/txn/verdict.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace percolator {
namespace {

TEST(VerdictCacheTest, AnEmptyCacheFindsNothing) {
  const VerdictCache cache;
  for (uint64_t ts = 1; ts < 5000; ++ts) ASSERT_EQ(cache.Find(Timestamp(ts)), std::nullopt);
}

TEST(VerdictCacheTest, RemembersBothVerdicts) {
  VerdictCache cache;
  cache.Remember(Timestamp(7), Verdict::Committed(Timestamp(8)));
  cache.Remember(Timestamp(9), Verdict::RolledBack());
  EXPECT_EQ(cache.Find(Timestamp(7)), Verdict::Committed(Timestamp(8)));
  EXPECT_EQ(cache.Find(Timestamp(9)), Verdict::RolledBack());
  EXPECT_EQ(cache.Find(Timestamp(8)), std::nullopt);
}

// The cache has a fixed size. A verdict may replace another, which is then not found, but is never returned for it.
TEST(VerdictCacheTest, EvictsVerdictsWithoutConfusingThem) {
  VerdictCache cache;
  constexpr uint64_t kMany = 100'000;
  for (uint64_t ts = 1; ts <= kMany; ++ts) cache.Remember(Timestamp(ts), Verdict::Committed(Timestamp(ts + 1)));
  uint64_t known = 0;
  for (uint64_t ts = 1; ts <= kMany; ++ts) {
    const std::optional<Verdict> verdict = cache.Find(Timestamp(ts));
    if (!verdict.has_value()) continue;
    ++known;
    ASSERT_EQ(*verdict, Verdict::Committed(Timestamp(ts + 1)));
  }
  EXPECT_GT(known, 500u);
  EXPECT_LE(known, 1024u);
}

TEST(VerdictCacheTest, IsThreadSafe) {
  VerdictCache cache;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache] {
      for (uint64_t ts = 1; ts < 20'000; ++ts) {
        cache.Remember(Timestamp(ts), Verdict::Committed(Timestamp(2 * ts)));
        const std::optional<Verdict> verdict = cache.Find(Timestamp(ts));
        if (verdict.has_value() && *verdict != Verdict::Committed(Timestamp(2 * ts))) ADD_FAILURE() << ts;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace percolator
