// SPDX-License-Identifier: Apache-2.0

// Small words of the script language.

#ifndef PERCOLATOR_TESTS_HISTORIES_WORDS_H_
#define PERCOLATOR_TESTS_HISTORIES_WORDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"

namespace percolator {

// The error of a command that cannot be played.
absl::Status Mistake(std::string_view what);

std::optional<int> ParseNumber(std::string_view text);
// The number in a last word "ts=7".
std::optional<int> WantedNumber(const std::vector<std::string>& words);
// A value in the notation of scripts: "300*a" is 300 letters. ValueText of dump.h is the inverse.
std::string ParseValue(const std::string& text);

// "1.5s"
std::string SecondsText(Duration duration);
std::string Joined(const std::vector<std::string>& pieces, std::string_view between);

// "v=30" or "v%3=0", for values that are whole numbers.
class ScriptPredicate {
 public:
  static absl::StatusOr<ScriptPredicate> Parse(std::string_view text);

  bool Holds(const std::string& value) const;

 private:
  std::optional<int> divisor_;
  int wanted_ = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_WORDS_H_
