// SPDX-License-Identifier: Apache-2.0

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "percolator/timestamp.h"

namespace percolator {
namespace {

bool Contains(const RowRange& range, const std::string& key) {
  return range.start <= key && (!range.limit.has_value() || key < *range.limit);
}

// All strings of one to three of these bytes, at which ranges go wrong most easily.
std::vector<std::string> NastyKeys() {
  const std::string alphabet("\x00\x01\xfe\xff", 4);
  std::vector<std::string> keys;
  for (char a : alphabet) {
    keys.push_back({a});
    for (char b : alphabet) {
      keys.push_back({a, b});
      for (char c : alphabet) keys.push_back({a, b, c});
    }
  }
  return keys;
}

TEST(TimestampTest, NextIsTheFollowingOneUpToInfinity) {
  EXPECT_EQ(Timestamp().value(), 0);
  EXPECT_EQ(Timestamp(7).Next(), Timestamp(8));
  EXPECT_EQ(Timestamp(Timestamp::Infinity().value() - 1).Next(), Timestamp::Infinity());
  EXPECT_EQ(Timestamp::Infinity().Next(), Timestamp::Infinity());
}

TEST(TimestampTest, PrintsItsNumberOrInf) {
  EXPECT_EQ(Timestamp(42).ToString(), "42");
  EXPECT_EQ(Timestamp::Infinity().ToString(), "inf");
}

TEST(TimestampRangeTest, IncludesItsStartAndExcludesItsEnd) {
  const TimestampRange range{Timestamp(3), Timestamp(5)};
  EXPECT_FALSE(range.Contains(Timestamp(2)));
  EXPECT_TRUE(range.Contains(Timestamp(3)));
  EXPECT_TRUE(range.Contains(Timestamp(4)));
  EXPECT_FALSE(range.Contains(Timestamp(5)));
}

TEST(TimestampRangeTest, NamedRangesHaveTheBordersOfTheirNames) {
  const Timestamp last(Timestamp::Infinity().value() - 1);
  EXPECT_TRUE(TimestampRange::All().Contains(Timestamp(0)));
  EXPECT_TRUE(TimestampRange::All().Contains(last));
  EXPECT_EQ(TimestampRange::Exactly(Timestamp(4)), (TimestampRange{Timestamp(4), Timestamp(5)}));
  EXPECT_EQ(TimestampRange::UpTo(Timestamp(4)), (TimestampRange{Timestamp(0), Timestamp(5)}));
  EXPECT_EQ(TimestampRange::From(Timestamp(4)), (TimestampRange{Timestamp(4), Timestamp::Infinity()}));
  EXPECT_TRUE(TimestampRange::Exactly(last).Contains(last));
  EXPECT_TRUE(TimestampRange::UpTo(Timestamp::Infinity()).Contains(last));
}

TEST(TimestampRangeTest, IsEmptyUnlessItsStartIsBeforeItsEnd) {
  EXPECT_FALSE((TimestampRange{Timestamp(3), Timestamp(4)}).empty());
  EXPECT_TRUE((TimestampRange{Timestamp(3), Timestamp(3)}).empty());
  EXPECT_TRUE((TimestampRange{Timestamp(4), Timestamp(3)}).empty());
  EXPECT_TRUE(TimestampRange::Exactly(Timestamp::Infinity()).empty());
}

TEST(FamilyTest, EachHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i < kFamilyCount; ++i) names.insert(FamilyName(static_cast<Family>(i)));
  EXPECT_EQ(names, (std::set<std::string_view>{"data", "lock", "notify", "write"}));
  EXPECT_EQ(FamilyName(Family::kData), "data");
  EXPECT_EQ(FamilyName(Family::kLock), "lock");
  EXPECT_EQ(FamilyName(Family::kWrite), "write");
  EXPECT_EQ(FamilyName(Family::kNotify), "notify");
}

TEST(RowRangeTest, AllHoldsEveryKey) {
  for (const std::string& key : NastyKeys()) EXPECT_TRUE(Contains(RowRange::All(), key));
}

TEST(RowRangeTest, SingleHoldsItsKeyAndNoOther) {
  for (const std::string& one : NastyKeys()) {
    for (const std::string& key : NastyKeys()) {
      EXPECT_EQ(Contains(RowRange::Single(one), key), key == one)
          << absl::BytesToHexString(one) << " " << absl::BytesToHexString(key);
    }
  }
}

TEST(RowRangeTest, PrefixHoldsTheKeysThatStartWithIt) {
  for (const std::string& prefix : NastyKeys()) {
    for (const std::string& key : NastyKeys()) {
      EXPECT_EQ(Contains(RowRange::Prefix(prefix), key), key.compare(0, prefix.size(), prefix) == 0)
          << absl::BytesToHexString(prefix) << " " << absl::BytesToHexString(key);
    }
  }
}

TEST(RowRangeTest, EmptyPrefixHoldsEveryKey) {
  for (const std::string& key : NastyKeys()) EXPECT_TRUE(Contains(RowRange::Prefix(""), key));
}

TEST(RowRangeTest, AfterHoldsTheGreaterKeysOnly) {
  for (const std::string& one : NastyKeys()) {
    for (const std::string& key : NastyKeys()) {
      EXPECT_EQ(Contains(RowRange::All().After(one), key), key > one)
          << absl::BytesToHexString(one) << " " << absl::BytesToHexString(key);
    }
  }
}

TEST(RowRangeTest, BeforeHoldsTheSmallerKeysOnly) {
  for (const std::string& one : NastyKeys()) {
    for (const std::string& key : NastyKeys()) {
      EXPECT_EQ(Contains(RowRange::All().Before(one), key), key < one)
          << absl::BytesToHexString(one) << " " << absl::BytesToHexString(key);
    }
  }
}

TEST(RowRangeTest, AfterAndBeforeStayWithinTheRange) {
  const RowRange range{"b", "d"};
  for (const std::string one : {"a", "b", "c", "d", "e"}) {
    for (const std::string key : {"a", "b", "c", "d", "e"}) {
      EXPECT_EQ(Contains(range.After(one), key), Contains(range, key) && key > one) << one << " " << key;
      EXPECT_EQ(Contains(range.Before(one), key), Contains(range, key) && key < one) << one << " " << key;
    }
  }
}

TEST(MutationTest, SetCarriesItsCellAndExactlyItsTimestamp) {
  const Mutation set = Mutation::Set(Family::kWrite, "c", Timestamp(9), "v");
  EXPECT_EQ(set.kind, Mutation::Kind::kSet);
  EXPECT_EQ(set.family, Family::kWrite);
  EXPECT_EQ(set.column, "c");
  EXPECT_EQ(set.range, TimestampRange::Exactly(Timestamp(9)));
  EXPECT_EQ(set.value, "v");
}

TEST(MutationTest, EraseCarriesItsCellAndRange) {
  const TimestampRange range{Timestamp(3), Timestamp(9)};
  const Mutation erase = Mutation::Erase(Family::kLock, "c", range);
  EXPECT_EQ(erase.kind, Mutation::Kind::kErase);
  EXPECT_EQ(erase.family, Family::kLock);
  EXPECT_EQ(erase.column, "c");
  EXPECT_EQ(erase.range, range);
  EXPECT_EQ(erase.value, "");
}

}  // namespace
}  // namespace percolator
