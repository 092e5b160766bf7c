// Script: a history as a text file. README.md beside it is the manual of the language.
//
// A file is a row of blocks, each a paragraph of commands, then, if they are to say something, a line "----" and what they
// say. Which commands there are is not known here.

#ifndef PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_
#define PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace percolator {

struct Command {
  std::string text;                // as it is written, for messages
  std::vector<std::string> words;  // the verb first; not empty
};

struct Block {
  std::string source;  // the lines up to the last command, with comments and empty lines before it
  int line = 0;        // of its first command
  std::vector<Command> commands;
  std::string expected;  // lines, each with its end
};

struct Script {
  // What the head of the file allows ("# layout: two-rows two-tables"). Empty: it says nothing, and allows all.
  std::vector<std::string> layouts;
  std::vector<std::string> commits;
  std::vector<std::string> stores;
  // "# cells: g w x | y z": the cells in the order of their names; those on different sides of a bar are in different rows
  // or tables, if the layout has several.
  std::vector<std::vector<std::string>> cells;
  // "# notify-only: w": cells that can't be written, only notified.
  std::vector<std::string> notify_only;

  std::vector<Block> blocks;
  std::string tail;  // comments after the last block
};

// kInvalidArgument: with the line that can't be understood.
absl::StatusOr<Script> ParseScript(std::string_view text);

// One command: "set t1 x 11".
// REQUIRES: it is not blank.
Command ParseCommand(std::string_view text);

// The text of the script if its blocks say these things.
std::string WithOutputs(const Script& script, const std::vector<std::string>& outputs);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_SCRIPT_H_
