// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/words.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "src/base/strings.h"

namespace percolator {

absl::Status Mistake(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

std::optional<int> ParseNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int> WantedNumber(const std::vector<std::string>& words) {
  std::string_view last = words.empty() ? std::string_view() : std::string_view(words.back());
  return ConsumePrefix(&last, "ts=") ? ParseNumber(last) : std::nullopt;
}

std::string ParseValue(const std::string& text) {
  const size_t star = text.find('*');
  if (star == std::string::npos || star + 2 != text.size()) return text;
  const std::optional<int> count = ParseNumber(std::string_view(text).substr(0, star));
  return count.has_value() ? std::string(static_cast<size_t>(*count), text.back()) : text;
}

std::string SecondsText(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1fs", std::chrono::duration<double>(duration).count());
  return text;
}

std::string Joined(const std::vector<std::string>& pieces, std::string_view between) {
  std::string out;
  for (const std::string& piece : pieces) out += StrCat(out.empty() ? "" : between, piece);
  return out;
}

absl::StatusOr<ScriptPredicate> ScriptPredicate::Parse(std::string_view text) {
  ScriptPredicate predicate;
  if (ConsumePrefix(&text, "v%")) {
    const size_t equals = std::min(text.find('='), text.size());
    predicate.divisor_ = ParseNumber(text.substr(0, equals)).value_or(0);
    text.remove_prefix(equals);
  } else {
    ConsumePrefix(&text, "v");
  }
  const std::optional<int> wanted = ConsumePrefix(&text, "=") ? ParseNumber(text) : std::nullopt;
  if (!wanted.has_value() || predicate.divisor_ == 0) return Mistake("not v=N or v%N=N");
  predicate.wanted_ = *wanted;
  return predicate;
}

bool ScriptPredicate::Holds(const std::string& value) const {
  const std::optional<int> number = ParseNumber(value);
  if (!number.has_value()) return false;
  return (divisor_.has_value() ? *number % *divisor_ : *number) == wanted_;
}

}  // namespace percolator
