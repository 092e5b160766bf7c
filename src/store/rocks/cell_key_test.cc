// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/cell_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"

namespace percolator {
namespace {

std::string Key(uint32_t table, const std::string& row, const std::string& column, uint64_t ts) {
  return CellKey(CellPrefix(RowPrefix(table, row), column), Timestamp(ts));
}

// These bytes are on users' disks: see docs/format.md.
TEST(CellKeyTest, GoldenBytes) {
  EXPECT_EQ(absl::BytesToHexString(Key(1, "Bob", "bal", 7)),
            "00000001"
            "426f62"
            "0001"
            "62616c"
            "0001"
            "fffffffffffffff8");
  EXPECT_EQ(absl::BytesToHexString(Key(0x01020304, std::string("a\0b", 3), "", 0)),
            "01020304"
            "6100ff62"
            "0001"
            "0001"
            "ffffffffffffffff");
}

TEST(CellKeyTest, KeysOrderAsTheirPartsForAllBytes) {
  const std::vector<std::string> strings = {std::string(),
                                            std::string("\0", 1),
                                            std::string("\0\0", 2),
                                            std::string("\0\x01", 2),
                                            std::string("\0\xff", 2),
                                            "\x01",
                                            "a",
                                            std::string("a\0", 2),
                                            std::string("a\0b", 3),
                                            "a\x01",
                                            "ab",
                                            "b",
                                            "\xfe",
                                            "\xff",
                                            "\xff\xff"};
  struct Parts {
    uint32_t table;
    std::string row, column;
    uint64_t ts;
    auto Order() const { return std::make_tuple(table, row, column, ~ts); }
  };
  std::vector<Parts> all;
  for (uint32_t table : {1u, 2u, 256u}) {
    for (const std::string& row : strings) {
      for (const std::string& column : strings) {
        for (uint64_t ts : {uint64_t{0}, uint64_t{1}, uint64_t{255}, uint64_t{256}, ~uint64_t{1}}) {
          all.push_back({table, row, column, ts});
        }
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const Parts& a, const Parts& b) { return a.Order() < b.Order(); });
  for (size_t i = 1; i < all.size(); ++i) {
    const Parts &a = all[i - 1], &b = all[i];
    ASSERT_LT(Key(a.table, a.row, a.column, a.ts), Key(b.table, b.row, b.column, b.ts));
  }
}

TEST(CellKeyTest, ParseReturnsTheParts) {
  const std::string row("r\0w", 3);
  const std::string key = Key(9, row, "col", 42);
  ParsedKey parsed;
  ASSERT_TRUE(ParseCellKey(key, &parsed));
  EXPECT_EQ(parsed.table, 9u);
  EXPECT_EQ(parsed.row, row);
  EXPECT_EQ(parsed.column, "col");
  EXPECT_EQ(parsed.timestamp, Timestamp(42));
  EXPECT_EQ(key.substr(0, parsed.row_prefix_bytes), RowPrefix(9, row));
}

TEST(CellKeyTest, ParseRefusesEveryTruncationAndTrailingBytes) {
  const std::string key = Key(9, "row", "col", 42);
  ParsedKey parsed;
  for (size_t n = 0; n < key.size(); ++n) EXPECT_FALSE(ParseCellKey(key.substr(0, n), &parsed)) << n;
  EXPECT_FALSE(ParseCellKey(key + "x", &parsed));
}

TEST(CellKeyTest, PastCellAndPastRowSeparate) {
  const std::string row_prefix = RowPrefix(1, "r");
  const std::string cell_prefix = CellPrefix(row_prefix, "c");
  EXPECT_LT(CellKey(cell_prefix, Timestamp(0)), PastCell(cell_prefix));
  EXPECT_LT(PastCell(cell_prefix), Key(1, "r", std::string("c\0", 2), 5));
  EXPECT_LT(Key(1, "r", "\xff\xff", 0), PastRow(row_prefix));
  EXPECT_LT(PastRow(row_prefix), Key(1, std::string("r\0", 2), "", 5));
}

TEST(CellKeyTest, RowKeysAndCellKeyMakeTheSameKeys) {
  const std::string row(40, '\0');
  const std::vector<std::string> columns = {"", "", "c", "c", std::string(1, '\0'), std::string(300, 'x'), "c"};
  RowKeys keys(7, row);
  EXPECT_EQ(keys.row_prefix(), RowPrefix(7, row));
  for (const std::string& column : columns) {
    const HashedPrefix cell = keys.GoTo(column);
    const std::string cell_prefix = CellPrefix(RowPrefix(7, row), column);
    EXPECT_EQ(cell.prefix, cell_prefix);
    EXPECT_EQ(cell.hash, HashedPrefix(cell_prefix).hash);
    for (uint64_t ts : {5, 3}) EXPECT_EQ(keys.At(Timestamp(ts)), Key(7, row, column, ts));
    EXPECT_EQ(cell.prefix, cell_prefix) << "the prefix has moved";
    EXPECT_EQ(keys.row_prefix(), RowPrefix(7, row));
  }
}

TEST(CellKeyTest, SeekKeyBelowIsTheNewestPossibleVersionBelow) {
  const std::string cell_prefix = CellPrefix(RowPrefix(1, "r"), "c");
  EXPECT_EQ(SeekKeyBelow(cell_prefix, Timestamp(8)), CellKey(cell_prefix, Timestamp(7)));
}

}  // namespace
}  // namespace percolator
