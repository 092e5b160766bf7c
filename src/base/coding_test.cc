// SPDX-License-Identifier: Apache-2.0

#include "src/base/coding.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace percolator {
namespace {

std::string Bytes(const std::string& hex) { return absl::HexStringToBytes(hex); }

std::string Fixed32(uint32_t value) {
  std::string out;
  AppendFixed32(&out, value);
  return out;
}

std::string Fixed64(uint64_t value) {
  std::string out;
  AppendFixed64(&out, value);
  return out;
}

std::string Ordered(std::string_view value) {
  std::string out;
  AppendOrderedString(&out, value);
  return out;
}

// All strings of up to three of the bytes that matter to the encoding, and random longer ones.
std::vector<std::string> NastyStrings() {
  const std::string alphabet("\x00\x01\x02\xfe\xff", 5);
  std::vector<std::string> strings = {""};
  for (size_t begin = 0, length = 1; length <= 3; ++length) {
    const size_t end = strings.size();
    for (; begin < end; ++begin) {
      for (char c : alphabet) strings.push_back(strings[begin] + c);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::string s(random() % 40, '\0');
    for (char& c : s) c = random() % 2 == 0 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
    strings.push_back(s);
  }
  return strings;
}

TEST(CodingTest, FixedIntegersAreBigEndian) {
  EXPECT_EQ(Fixed32(0), Bytes("00000000"));
  EXPECT_EQ(Fixed32(0x01020304), Bytes("01020304"));
  EXPECT_EQ(Fixed32(0xffffffff), Bytes("ffffffff"));
  EXPECT_EQ(Fixed64(0), Bytes("0000000000000000"));
  EXPECT_EQ(Fixed64(0x0102030405060708), Bytes("0102030405060708"));
  EXPECT_EQ(Fixed64(std::numeric_limits<uint64_t>::max()), Bytes("ffffffffffffffff"));
}

TEST(CodingTest, OrderedStringsEscapeZeroAndEndWithZeroOne) {
  EXPECT_EQ(Ordered(""), Bytes("0001"));
  EXPECT_EQ(Ordered("abc"), Bytes("6162630001"));
  EXPECT_EQ(Ordered(Bytes("00")), Bytes("00ff0001"));
  EXPECT_EQ(Ordered(Bytes("0001ff")), Bytes("00ff01ff0001"));
  EXPECT_EQ(Ordered(Bytes("610000")), Bytes("6100ff00ff0001"));
}

TEST(CodingTest, AppendKeepsExistingBytes) {
  std::string out = "x";
  AppendFixed32(&out, 1);
  AppendFixed64(&out, 2);
  AppendOrderedString(&out, "y");
  EXPECT_EQ(out, "x" + Bytes("00000001") + Bytes("0000000000000002") + Bytes("790001"));
}

TEST(CodingTest, ConsumeReturnsTheAppendedValueAndLeavesTheRest) {
  for (const std::string& s : NastyStrings()) {
    std::string out;
    AppendFixed32(&out, 0xfedcba98);
    AppendOrderedString(&out, s);
    AppendFixed64(&out, 0xfedcba9876543210);
    out += "rest";

    std::string_view in = out;
    uint32_t u32 = 0;
    std::string decoded = "old contents";
    uint64_t u64 = 0;
    ASSERT_TRUE(ConsumeFixed32(&in, &u32));
    ASSERT_TRUE(ConsumeOrderedString(&in, &decoded)) << absl::BytesToHexString(s);
    ASSERT_TRUE(ConsumeFixed64(&in, &u64));
    EXPECT_EQ(u32, 0xfedcba98);
    EXPECT_EQ(decoded, s);
    EXPECT_EQ(u64, 0xfedcba9876543210);
    EXPECT_EQ(in, "rest");
  }
}

TEST(CodingTest, DecodeFixed64ReadsTheAppendedValue) {
  EXPECT_EQ(DecodeFixed64(Fixed64(0x0102030405060708).data()), 0x0102030405060708);
}

TEST(CodingTest, FixedIntegersSortLikeNumbers) {
  const std::vector<uint64_t> numbers = {
      0, 1, 0xff, 0x100, 0xffff'ffff, uint64_t{1} << 32, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()};
  for (uint64_t a : numbers) {
    for (uint64_t b : numbers) {
      EXPECT_EQ(Fixed64(a) < Fixed64(b), a < b) << a << " " << b;
      const uint32_t a32 = static_cast<uint32_t>(a), b32 = static_cast<uint32_t>(b);
      EXPECT_EQ(Fixed32(a32) < Fixed32(b32), a32 < b32) << a32 << " " << b32;
    }
  }
}

TEST(CodingTest, OrderedStringsSortLikeTheStringsEvenIfBytesFollow) {
  const std::vector<std::string> strings = NastyStrings();
  const std::vector<std::string> followers = {"",          Bytes("00"),   Bytes("01"),
                                              Bytes("ff"), Bytes("00ff"), Bytes("ffffffff")};
  for (const std::string& a : strings) {
    for (const std::string& b : strings) {
      if (!(a < b)) continue;
      for (const std::string& after_a : followers) {
        for (const std::string& after_b : followers) {
          ASSERT_LT(Ordered(a) + after_a, Ordered(b) + after_b)
              << absl::BytesToHexString(a) << " then " << absl::BytesToHexString(after_a) << ", "
              << absl::BytesToHexString(b) << " then " << absl::BytesToHexString(after_b);
        }
      }
    }
  }
}

TEST(CodingTest, SequencesOfOrderedStringsSortLikeTuples) {
  using Key = std::tuple<std::string, std::string, uint64_t>;
  std::mt19937 random(2);
  const std::vector<std::string> strings = NastyStrings();
  auto pick = [&] { return strings[random() % 40]; };
  std::vector<Key> keys;
  for (int i = 0; i < 400; ++i) keys.emplace_back(pick(), pick(), random() % 3);
  auto encode = [](const Key& key) {
    return Ordered(std::get<0>(key)) + Ordered(std::get<1>(key)) + Fixed64(std::get<2>(key));
  };
  for (const Key& a : keys) {
    for (const Key& b : keys) ASSERT_EQ(encode(a) < encode(b), a < b);
  }
}

TEST(CodingTest, TruncatedInputIsRefused) {
  uint32_t u32;
  uint64_t u64;
  std::string s;
  for (size_t size = 0; size < 4; ++size) {
    const std::string bytes = Fixed32(1).substr(0, size);
    std::string_view in = bytes;
    EXPECT_FALSE(ConsumeFixed32(&in, &u32)) << size;
  }
  for (size_t size = 0; size < 8; ++size) {
    const std::string bytes = Fixed64(1).substr(0, size);
    std::string_view in = bytes;
    EXPECT_FALSE(ConsumeFixed64(&in, &u64)) << size;
  }
  const std::string whole = Ordered(Bytes("610062"));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    std::string_view in = bytes;
    EXPECT_FALSE(ConsumeOrderedString(&in, &s)) << size;
  }
}

TEST(CodingTest, AZeroByteWithAnInvalidSuccessorIsRefused) {
  for (int next = 0; next < 256; ++next) {
    const std::string bytes = std::string("a") + '\0' + static_cast<char>(next) + Bytes("0001");
    std::string_view in = bytes;
    std::string s;
    EXPECT_EQ(ConsumeOrderedString(&in, &s), next == 0x01 || next == 0xff) << next;
  }
}

}  // namespace
}  // namespace percolator
