// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/version_cache.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace percolator {
namespace {

constexpr size_t kPlenty = size_t{1} << 20;

// "value@timestamp", or "-".
std::string FindIn(VersionCache* cache, std::string_view cell, uint64_t changes = 0,
                   const TimestampRange& range = TimestampRange::All()) {
  Cell found;
  if (!cache->Find(cell, changes, range, &found)) return "-";
  return found.value + "@" + found.timestamp.ToString();
}

TEST(VersionCacheTest, FindsFilledVersions) {
  VersionCache cache(kPlenty);
  EXPECT_EQ(FindIn(&cache, "a"), "-");
  cache.Fill("a", 0, Timestamp(7), "seven");
  EXPECT_EQ(FindIn(&cache, "a"), "seven@7");
  EXPECT_EQ(FindIn(&cache, "b"), "-");
}

TEST(VersionCacheTest, AnswersOnlyForRangesWithTheNewestVersion) {
  VersionCache cache(kPlenty);
  cache.Fill("a", 0, Timestamp(7), "seven");
  EXPECT_EQ(FindIn(&cache, "a", 0, TimestampRange::UpTo(Timestamp(7))), "seven@7");
  EXPECT_EQ(FindIn(&cache, "a", 0, TimestampRange::UpTo(Timestamp(6))), "-");
  EXPECT_EQ(FindIn(&cache, "a", 0, TimestampRange::From(Timestamp(8))), "-");
}

TEST(VersionCacheTest, AnEntryIsOutdatedAfterAChange) {
  VersionCache cache(kPlenty);
  cache.Fill("a", 3, Timestamp(7), "seven");
  EXPECT_EQ(FindIn(&cache, "a", 3), "seven@7");
  EXPECT_EQ(FindIn(&cache, "a", 4), "-");
  cache.Fill("a", 4, Timestamp(6), "a longer value than before");
  EXPECT_EQ(FindIn(&cache, "a", 4), "a longer value than before@6");
  // A slow reader adds the outdated version again: no later reader takes it for the newest.
  cache.Fill("a", 3, Timestamp(7), "seven");
  EXPECT_EQ(FindIn(&cache, "a", 4), "-");
}

TEST(VersionCacheTest, StaysWithinItsBytes) {
  VersionCache cache(kPlenty);
  for (int i = 0; i < 20'000; ++i) {
    const std::string cell = "cell" + std::to_string(i);
    cache.Fill(cell, 0, Timestamp(1), std::string(100, 'v'));
    // Values that grow later have to fit too.
    cache.Fill(cell, 1, Timestamp(2), std::string(i % 1000, 'w'));
    ASSERT_LE(cache.bytes(), kPlenty);
  }
  EXPECT_GT(cache.bytes(), kPlenty / 2);
  EXPECT_EQ(FindIn(&cache, "cell0", 1), "-");
  EXPECT_NE(FindIn(&cache, "cell19999", 1), "-");
}

TEST(VersionCacheTest, CellsThatAreReadStayLonger) {
  VersionCache cache(kPlenty);
  cache.Fill("hot", 0, Timestamp(1), "value");
  cache.Fill("cold", 0, Timestamp(1), "value");
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(FindIn(&cache, "hot"), "value@1");
    cache.Fill("cell" + std::to_string(i), 0, Timestamp(1), std::string(100, 'v'));
  }
  EXPECT_EQ(FindIn(&cache, "cold"), "-");
}

TEST(VersionCacheTest, LeavesOutVersionsThatAreTooLarge) {
  VersionCache cache(kPlenty);
  cache.Fill("a", 0, Timestamp(1), std::string(kPlenty, 'v'));
  EXPECT_EQ(FindIn(&cache, "a"), "-");
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(VersionCacheTest, ACacheOfZeroBytesKeepsNothing) {
  VersionCache cache(0);
  cache.Fill("a", 0, Timestamp(7), "seven");
  EXPECT_EQ(FindIn(&cache, "a"), "-");
}

}  // namespace
}  // namespace percolator
