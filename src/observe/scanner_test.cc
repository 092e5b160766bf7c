// SPDX-License-Identifier: Apache-2.0

// Tests where a scanner begins, and its circle.

#include "src/observe/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/strings.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

TEST(KeyBetweenTest, ReturnsAKeyBetween) {
  const std::vector<std::optional<std::string>> limits = {std::nullopt, "b", "row2", std::string("\xff\xff"),
                                                          "zzzzzzzzzzzz"};
  for (const std::string& start :
       {std::string(), std::string("a"), std::string("row1"), std::string("row1/with a long tail")}) {
    for (const std::optional<std::string>& limit : limits) {
      if (limit.has_value() && *limit <= start) continue;
      for (uint64_t random : {uint64_t{0}, uint64_t{1}, uint64_t{0x123456789abcdef}, UINT64_MAX}) {
        const std::string key = KeyBetween(start, limit, random);
        EXPECT_GE(key, start);
        EXPECT_TRUE(!limit.has_value() || key < *limit) << key;
      }
    }
  }
}

TEST(KeyBetweenTest, ReachesEveryPart) {
  // Of the keys between "k1" and "k9", those that begin with k1, k2, ... k8.
  std::vector<int> reached(10);
  for (uint64_t i = 0; i < 1000; ++i) {
    const std::string key = KeyBetween("k1", "k9", i * 0x9e3779b97f4a7c15U);
    ASSERT_EQ(key[0], 'k');
    ++reached[static_cast<size_t>(key[1] - '0')];
  }
  for (size_t digit = 1; digit <= 8; ++digit) EXPECT_GT(reached[digit], 60) << digit;
}

TEST(KeyBetweenTest, WithoutAKeyBetweenReturnsTheStart) {
  EXPECT_EQ(KeyBetween("a", std::string("a\0", 2), 17), "a");
  const std::string common(2000, 'x');
  EXPECT_EQ(KeyBetween(common + "a", common + "b", 17), common + "a");
}

std::vector<std::string> Texts(const std::vector<ScanPiece>& pieces) {
  std::vector<std::string> texts;
  for (const ScanPiece& piece : pieces) {
    texts.push_back(StrCat(piece.table, "[", piece.rows.start, ",", piece.rows.limit.value_or("end"), ")"));
  }
  return texts;
}

TEST(CircleTest, GoesRoundToItsStart) {
  const std::vector<ScanPiece> pieces = {{"t", {"", "g"}}, {"t", {"g", std::nullopt}}, {"u", {"", std::nullopt}}};
  EXPECT_THAT(Texts(Circle(pieces, 1, "m")), ElementsAre("t[m,end)", "u[,end)", "t[,g)", "t[g,m)"));
  EXPECT_THAT(Texts(Circle(pieces, 0, "")), ElementsAre("t[,g)", "t[g,end)", "u[,end)"));
  EXPECT_THAT(Texts(Circle({pieces[2]}, 0, "x")), ElementsAre("u[x,end)", "u[,x)"));
}

}  // namespace
}  // namespace percolator
