// SPDX-License-Identifier: Apache-2.0

// Script: a history as a text file. README.md is the manual of the language.
//
// A file is a series of blocks. Each is a paragraph of commands, and, if they have an output, a line "----" and the
// output. The parser does not know the commands.

#ifndef PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_
#define PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace percolator {

struct Command {
  std::string text;                // as written, for messages
  std::vector<std::string> words;  // the verb first; not empty
};

struct Block {
  std::string source;  // the lines up to the last command, with comments and empty lines before it
  int line = 0;        // of its first command
  std::vector<Command> commands;
  std::string expected;  // lines, each with its end
};

struct Script {
  // The variants that the head of the file allows ("# layout: two-rows two-tables"). Empty: all.
  std::vector<std::string> layouts;
  std::vector<std::string> commits;
  std::vector<std::string> stores;
  // "# cells: g w x | y z": the cells in the order of their names. Those on different sides of a bar are in different
  // rows or tables, if the layout has several.
  std::vector<std::vector<std::string>> cells;
  // "# notify-only: w": cells that can only be notified, not written.
  std::vector<std::string> notify_only;

  std::vector<Block> blocks;
  std::string tail;  // comments after the last block
};

// Returns InvalidArgument with the malformed line.
absl::StatusOr<Script> ParseScript(std::string_view text);

// One command: "set t1 x 11". REQUIRES: it is not blank.
Command ParseCommand(std::string_view text);

// The text of the script with these outputs of its blocks.
std::string WithOutputs(const Script& script, const std::vector<std::string>& outputs);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_
