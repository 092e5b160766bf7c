// SPDX-License-Identifier: Apache-2.0

#include "src/txn/mark.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

TEST(MarkTest, GoldenBytes) {
  EXPECT_EQ(Hex(EncodeMark({.depth = 3})), "0100000003");
  EXPECT_EQ(Hex(PendingColumn("c")), "007063");
  EXPECT_EQ(Hex(AckColumn("c", "o")), "0061636b6300016f");
}

TEST(MarkTest, DecodeReturnsTheEncodedMark) {
  for (const uint32_t depth : {0U, 1U, 1000U, UINT32_MAX}) {
    const auto mark = DecodeMark(EncodeMark({depth}));
    ASSERT_TRUE(mark.ok());
    EXPECT_EQ(mark->depth, depth);
  }
  EXPECT_EQ(ColumnOfPending(PendingColumn("contents")), "contents");
  EXPECT_EQ(ColumnOfPending("contents"), std::nullopt);
  const std::string with_zero("a\0b", 3);
  EXPECT_EQ(ColumnOfAck(AckColumn(with_zero, "parse")), with_zero);
  EXPECT_EQ(ColumnOfAck("contents"), std::nullopt);
}

TEST(MarkTest, InvalidBytesAreRefused) {
  EXPECT_EQ(DecodeMark("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeMark(std::string_view("\1\0\0\0", 4)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeMark(std::string_view("\1\0\0\0\0\0", 6)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeMark(std::string_view("\2\0\0\0\0", 5)).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace percolator
