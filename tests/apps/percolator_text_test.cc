// SPDX-License-Identifier: Apache-2.0

// Bytes, times and durations as the command line prints and parses them: apps/percolator/text.h.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "apps/percolator/text.h"
#include "tests/testing/status_matchers.h"

namespace percolator::cli {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(EscapedTest, PrintableTextIsUnchanged) {
  EXPECT_EQ(Escaped("Bob's account, 3 %"), "Bob's account, 3 %");
  EXPECT_EQ(Escaped("Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x90\x9d"), "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x90\x9d");
  EXPECT_EQ(Escaped(""), "");
}

TEST(EscapedTest, OtherBytesAreEscaped) {
  EXPECT_EQ(Escaped(std::string("a\0b\\c\n\t\r\x1b", 9)), "a\\x00b\\\\c\\n\\t\\r\\x1b");
  EXPECT_EQ(Escaped("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Escaped("\xc3"), "\\xc3");                    // cut off
  EXPECT_EQ(Escaped("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // writes from right to left
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\xc2\\x9b");           // a control that terminals obey
}

TEST(EscapedTest, PrintedTextCanBeTyped) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  all += "\xe2\x82\xac\\x41\\";
  EXPECT_EQ(Unescaped(Escaped(all)).value(), all);
  EXPECT_EQ(Unescaped("\\x41\\xfF").value(), "A\xff");
}

TEST(EscapedTest, AnInvalidBackslashIsRefused) {
  for (const char* text : {"\\", "a\\q", "\\x", "\\x4", "\\xg0", "\\x-1", "\\X00"}) {
    EXPECT_THAT(Unescaped(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(EscapedTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(EscapedShort("abc", 3), "abc");
  EXPECT_EQ(EscapedShort("abcd", 3), "abc... (4 bytes)");
  EXPECT_EQ(EscapedShort("\xc3\xbc\xc3\xbc\xc3\xbc", 2), "\xc3\xbc\xc3\xbc... (6 bytes)");
}

TEST(WidthTest, CountsCharacters) {
  EXPECT_EQ(WidthOf("Z\xc3\xbcrich"), 6u);
  EXPECT_TRUE(IsUtf8("Z\xc3\xbcrich"));
  EXPECT_FALSE(IsUtf8("\xfc"));
}

TEST(DurationTest, NumbersAndUnits) {
  EXPECT_EQ(ParseDuration("0s").value(), Duration(0));
  EXPECT_EQ(ParseDuration("7us").value(), microseconds(7));
  EXPECT_EQ(ParseDuration("500ms").value(), milliseconds(500));
  EXPECT_EQ(ParseDuration("1h30m").value(), minutes(90));
  EXPECT_EQ(ParseDuration("2d").value(), hours(48));
  for (const char* text : {"", "5", "m", "-5m", "5 m", "1.5h", "5x", "99999999999999999999s", "200000000d"}) {
    EXPECT_THAT(ParseDuration(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(DurationTest, AgesAreShort) {
  EXPECT_EQ(AgeText(Duration(0)), "0us");
  EXPECT_EQ(AgeText(microseconds(1500)), "1ms");
  EXPECT_EQ(AgeText(milliseconds(1290)), "1.2s");
  EXPECT_EQ(AgeText(seconds(59)), "59s");
  EXPECT_EQ(AgeText(seconds(312)), "5m 12s");
  EXPECT_EQ(AgeText(minutes(120)), "2h");
  EXPECT_EQ(AgeText(hours(76)), "3d 4h");
}

TEST(TimeTest, TimesHaveThreeForms) {
  const Timestamp now(10'000'000'000);
  EXPECT_EQ(ParseTime("123", now).value(), Timestamp(123));
  EXPECT_EQ(ParseTime("-5m", now).value(), Timestamp(9'700'000'000));
  EXPECT_EQ(ParseTime("-365d", now).value(), Timestamp());
  EXPECT_EQ(ParseTime("2025-01-01T00:00:01Z", now).value(), Timestamp(1'000'000));
  EXPECT_EQ(ParseTime("2025-01-02T01:02:03.5Z", now).value(), Timestamp(90'123'500'000));
  EXPECT_EQ(ParseTime("1970-01-01T00:00:00Z", now).value(), Timestamp());
  for (const char* text :
       {"", "now", "5m", "-5", "2025-01-01", "2025-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2025-01-01T24:00:00Z",
        "2025-01-01T00:00:00", "2025-01-01T00:00:00.Z", "+2025-1-01T00:00:00Z", "99999999999999999999"}) {
    EXPECT_THAT(ParseTime(text, now), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(TimeTest, PrintedTextCanBeTyped) {
  const Timestamp ts(59'126'753'879'959);
  EXPECT_EQ(TimeText(ts), "2026-11-16T08:05:53.879959Z");
  EXPECT_EQ(ParseTime(TimeText(ts), Timestamp()).value(), ts);
  EXPECT_EQ(TimeText(Timestamp()), "2025-01-01T00:00:00.000000Z");
  EXPECT_EQ(TimeText(Timestamp::Infinity()), "inf");
}

}  // namespace
}  // namespace percolator::cli
