// SPDX-License-Identifier: Apache-2.0

#include "apps/percolator/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>

#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Character {
  char32_t code = 0;
  size_t bytes = 0;
};

// The first character. Absent if it is not UTF-8: cut off, overlong, a surrogate, or past the end of Unicode.
std::optional<Character> DecodeFirst(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return std::nullopt;
  char32_t code = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return std::nullopt;
  return Character{code, length};
}

// Returns false for controls, and for characters without width or that change the direction of writing, because with them one
// name could look like another.
bool IsPrintable(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  return !(code >= 0x200B && code <= 0x200F) && !(code >= 0x2028 && code <= 0x202E) &&
         !(code >= 0x2060 && code <= 0x206F) && code != 0xFEFF;
}

void AppendHex(std::string* out, char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  out->append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
}

// Appends the first character, or byte, escaped. Returns its number of bytes.
size_t AppendFirst(std::string* out, std::string_view bytes) {
  switch (bytes[0]) {
    case '\\':
      out->append("\\\\");
      return 1;
    case '\n':
      out->append("\\n");
      return 1;
    case '\r':
      out->append("\\r");
      return 1;
    case '\t':
      out->append("\\t");
      return 1;
    default:
      break;
  }
  const std::optional<Character> character = DecodeFirst(bytes);
  const size_t length = character.has_value() ? character->bytes : 1;
  if (character.has_value() && IsPrintable(character->code)) {
    out->append(bytes.substr(0, length));
  } else {
    for (const char c : bytes.substr(0, length)) AppendHex(out, c);
  }
  return length;
}

absl::Status BadEscape(std::string_view text) {
  return absl::InvalidArgumentError("invalid escape in \"" + std::string(text) +
                                    "\": write \\\\ for a backslash, \\x00 for a byte, or \\n \\r \\t");
}

absl::Status BadTime(std::string_view text) {
  return absl::InvalidArgumentError(
      "invalid time \"" + std::string(text) +
      "\": write a timestamp, a date such as 2026-11-15T10:00:00Z, or a duration before now: -5m");
}

absl::Status BadDuration(std::string_view text) {
  return absl::InvalidArgumentError("invalid duration \"" + std::string(text) +
                                    "\": write a number and a unit (us ms s m h d), such as 500ms or 1h30m");
}

template <typename Number>
bool ConsumeNumber(std::string_view* in, Number* number) {
  const auto [end, error] = std::from_chars(in->data(), in->data() + in->size(), *number);
  if (error != std::errc() || end == in->data()) return false;
  in->remove_prefix(static_cast<size_t>(end - in->data()));
  return true;
}

bool ConsumeText(std::string_view* in, std::string_view text) {
  if (!in->starts_with(text)) return false;
  in->remove_prefix(text.size());
  return true;
}

// Exactly `digits` digits, without a sign.
bool ConsumeDigits(std::string_view* in, size_t digits, unsigned* number) {
  if (in->size() < digits) return false;
  std::string_view field = in->substr(0, digits);
  if (field.find_first_not_of("0123456789") != std::string_view::npos || !ConsumeNumber(&field, number)) return false;
  in->remove_prefix(digits);
  return true;
}

std::optional<microseconds> ConsumeUnit(std::string_view* in) {
  if (ConsumeText(in, "us")) return microseconds(1);
  if (ConsumeText(in, "ms")) return milliseconds(1);
  if (ConsumeText(in, "s")) return seconds(1);
  if (ConsumeText(in, "m")) return minutes(1);
  if (ConsumeText(in, "h")) return hours(1);
  if (ConsumeText(in, "d")) return days(1);
  return std::nullopt;
}

// .123456 or nothing. Further digits are ignored.
bool ConsumeFraction(std::string_view* in, microseconds* fraction) {
  *fraction = microseconds(0);
  if (!ConsumeText(in, ".")) return true;
  const size_t digits = std::min(in->find_first_not_of("0123456789"), in->size());
  if (digits == 0) return false;
  std::string micros(in->substr(0, std::min<size_t>(digits, 6)));
  micros.resize(6, '0');
  *fraction = microseconds(std::stoi(micros));
  in->remove_prefix(digits);
  return true;
}

std::optional<Timestamp::Time> ParseCalendar(std::string_view in) {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  microseconds fraction(0);
  const bool read = ConsumeDigits(&in, 4, &year) && ConsumeText(&in, "-") && ConsumeDigits(&in, 2, &month) &&
                    ConsumeText(&in, "-") && ConsumeDigits(&in, 2, &day) && ConsumeText(&in, "T") &&
                    ConsumeDigits(&in, 2, &hour) && ConsumeText(&in, ":") && ConsumeDigits(&in, 2, &minute) &&
                    ConsumeText(&in, ":") && ConsumeDigits(&in, 2, &second) && ConsumeFraction(&in, &fraction) &&
                    ConsumeText(&in, "Z") && in.empty();
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)), std::chrono::month(month),
                                         std::chrono::day(day));
  if (!read || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + fraction;
}

}  // namespace

std::string Escaped(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) bytes.remove_prefix(AppendFirst(&out, bytes));
  return out;
}

absl::StatusOr<std::string> Unescaped(std::string_view text) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    if (rest[0] != '\\') {
      out.push_back(rest[0]);
      rest.remove_prefix(1);
    } else if (ConsumeText(&rest, "\\\\")) {
      out.push_back('\\');
    } else if (ConsumeText(&rest, "\\n")) {
      out.push_back('\n');
    } else if (ConsumeText(&rest, "\\r")) {
      out.push_back('\r');
    } else if (ConsumeText(&rest, "\\t")) {
      out.push_back('\t');
    } else {
      unsigned byte = 0;
      if (!ConsumeText(&rest, "\\x") || rest.size() < 2) return BadEscape(text);
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + 2, byte, 16);
      if (error != std::errc() || end != rest.data() + 2) return BadEscape(text);
      out.push_back(static_cast<char>(byte));
      rest.remove_prefix(2);
    }
  }
  return out;
}

std::string EscapedShort(std::string_view bytes, size_t max_characters) {
  std::string out;
  std::string_view rest = bytes;
  for (size_t shown = 0; !rest.empty() && shown < max_characters; ++shown) rest.remove_prefix(AppendFirst(&out, rest));
  if (!rest.empty()) out += "... (" + std::to_string(bytes.size()) + " bytes)";
  return out;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::optional<Character> character = DecodeFirst(bytes);
    if (!character.has_value()) return false;
    bytes.remove_prefix(character->bytes);
  }
  return true;
}

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

std::string CellText(const CellName& cell) {
  return Escaped(cell.table) + "/" + Escaped(cell.row) + "/" + Escaped(cell.column);
}

std::string TimeText(Timestamp ts) {
  constexpr uint64_t kMax = uint64_t{1} << 57;  // some thousand years; a larger timestamp is damaged
  if (ts.value() > kMax) return ts.ToString();
  const Timestamp::Time time = ts.time();
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text.data();
}

std::string AgeText(Duration age) {
  const auto count = [&](auto unit) { return std::to_string(std::chrono::floor<decltype(unit)>(age).count()); };
  const auto pair = [&](auto large, const char* large_name, auto small, const char* small_name) {
    const auto whole = std::chrono::floor<decltype(large)>(age);
    const auto rest = std::chrono::floor<decltype(small)>(age - whole).count();
    return std::to_string(whole.count()) + large_name + (rest == 0 ? "" : " " + std::to_string(rest) + small_name);
  };
  if (age >= days(1)) return pair(days(), "d", hours(), "h");
  if (age >= hours(1)) return pair(hours(), "h", minutes(), "m");
  if (age >= minutes(1)) return pair(minutes(), "m", seconds(), "s");
  if (age >= seconds(10)) return count(seconds()) + "s";
  if (age >= seconds(1)) {
    const int64_t tenths = std::chrono::floor<milliseconds>(age).count() / 100;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
  }
  return age >= milliseconds(1) ? count(milliseconds()) + "ms" : count(microseconds()) + "us";
}

absl::StatusOr<Duration> ParseDuration(std::string_view text) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max() / 2;
  uint64_t total = 0;
  std::string_view rest = text;
  do {
    uint64_t number = 0;
    if (!ConsumeNumber(&rest, &number)) return BadDuration(text);
    const std::optional<microseconds> unit = ConsumeUnit(&rest);
    if (!unit.has_value()) return BadDuration(text);
    const auto factor = static_cast<uint64_t>(unit->count());
    if (number > kMax / factor || total > kMax - number * factor) return BadDuration(text);
    total += number * factor;
  } while (!rest.empty());
  return Duration(static_cast<int64_t>(total));
}

absl::StatusOr<Timestamp> ParseTime(std::string_view text, Timestamp now) {
  if (text.starts_with('-')) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Duration ago, ParseDuration(text.substr(1)));
    const auto micros = static_cast<uint64_t>(ago.count());
    return Timestamp(now.value() > micros ? now.value() - micros : 0);
  }
  std::string_view rest = text;
  uint64_t number = 0;
  if (ConsumeNumber(&rest, &number) && rest.empty()) return Timestamp(number);
  const std::optional<Timestamp::Time> time = ParseCalendar(text);
  if (!time.has_value()) return BadTime(text);
  return Timestamp::At(*time);
}

}  // namespace percolator::cli
