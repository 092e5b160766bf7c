// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/script.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr std::string_view kSays = "----";
constexpr std::string_view kDefaultCells = "g w x | y z";

std::vector<std::string> Words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

// A command line without the comment at its end.
std::string_view WithoutRemark(std::string_view line) {
  const size_t remark = line.find(" #");
  return remark == std::string_view::npos ? line : line.substr(0, remark);
}

absl::StatusOr<std::vector<std::vector<std::string>>> ParseCells(std::string_view text) {
  std::vector<std::vector<std::string>> groups(1);
  std::string last;
  for (const std::string& word : Words(text)) {
    if (word == "|") {
      groups.emplace_back();
      continue;
    }
    // The first cell of a transaction, by name, is its primary, so the order must be the same in all layouts.
    if (word <= last) return absl::InvalidArgumentError("cells must be named in ascending order");
    last = word;
    groups.back().push_back(word);
  }
  if (std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.empty(); })) {
    return absl::InvalidArgumentError("no cells on one side of a bar");
  }
  return groups;
}

// "# layout: two-rows" and the like; other comments have no meaning for the program.
absl::Status ParseComment(std::string_view line, Script* script) {
  std::string_view rest = line;
  if (ConsumePrefix(&rest, "# layout: ")) {
    script->layouts = Words(rest);
  } else if (ConsumePrefix(&rest, "# commit: ")) {
    script->commits = Words(rest);
  } else if (ConsumePrefix(&rest, "# store: ")) {
    script->stores = Words(rest);
  } else if (ConsumePrefix(&rest, "# notify-only: ")) {
    script->notify_only = Words(rest);
  } else if (ConsumePrefix(&rest, "# cells: ")) {
    absl::StatusOr<std::vector<std::vector<std::string>>> cells = ParseCells(rest);
    if (!cells.ok()) return cells.status();
    script->cells = *std::move(cells);
  }
  return absl::OkStatus();
}

class Parser {
 public:
  absl::StatusOr<Script> Parse(std::string_view text) {
    script_.cells = *ParseCells(kDefaultCells);
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) {
      ++line_;
      if (absl::Status s = Take(line); !s.ok()) {
        return absl::InvalidArgumentError(StrCat("line ", line_, ": ", s.message()));
      }
    }
    EndBlock();
    script_.tail = std::move(block_.source);
    return std::move(script_);
  }

 private:
  absl::Status Take(const std::string& line) {
    if (IsBlank(line)) EndBlock();
    if (in_output_) {
      block_.expected += line + "\n";
      return absl::OkStatus();
    }
    if (line == kSays) {
      if (block_.commands.empty()) return absl::InvalidArgumentError("---- without commands before it");
      in_output_ = true;
      return absl::OkStatus();
    }
    block_.source += line + "\n";
    if (IsBlank(line)) return absl::OkStatus();
    if (line.front() == '#') return ParseComment(line, &script_);
    TakeCommands(WithoutRemark(line));
    return absl::OkStatus();
  }

  void TakeCommands(std::string_view line) {
    if (block_.commands.empty()) block_.line = line_;
    while (!line.empty()) {
      const size_t end = std::min(line.find(';'), line.size());
      if (!IsBlank(line.substr(0, end))) block_.commands.push_back(ParseCommand(line.substr(0, end)));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
  }

  void EndBlock() {
    in_output_ = false;
    if (block_.commands.empty()) return;
    script_.blocks.push_back(std::exchange(block_, {}));
  }

  Script script_;
  Block block_;
  bool in_output_ = false;
  int line_ = 0;
};

}  // namespace

Command ParseCommand(std::string_view text) {
  Command command;
  command.words = Words(text);
  for (const std::string& word : command.words) command.text += (command.text.empty() ? "" : " ") + word;
  return command;
}

absl::StatusOr<Script> ParseScript(std::string_view text) { return Parser().Parse(text); }

std::string WithOutputs(const Script& script, const std::vector<std::string>& outputs) {
  std::string text;
  for (size_t i = 0; i < script.blocks.size(); ++i) {
    text += script.blocks[i].source;
    if (!outputs[i].empty()) text += StrCat(kSays, "\n", outputs[i]);
  }
  return text + script.tail;
}

}  // namespace percolator
