// SPDX-License-Identifier: Apache-2.0

// percolator set: writes a cell in one transaction. A worker then runs the observers of the column.

#include <cstddef>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/file.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct SetArguments {
  std::string table;
  std::string row;
  std::string column;
  std::optional<std::string> value;
  std::optional<std::string> from;
};

// Larger than the limit of any store, so that the error comes from the store and names its limit.
constexpr size_t kValueBytes = 256 << 20;

absl::StatusOr<std::string> ValueOf(const SetArguments& arguments) {
  if (arguments.value.has_value() == arguments.from.has_value()) {
    return absl::InvalidArgumentError("give either VALUE or --from FILE");
  }
  if (!arguments.from.has_value()) return Unescaped(*arguments.value);
  return *arguments.from == "-" ? ReadStandardInput(kValueBytes) : ReadWholeFile(*arguments.from, kValueBytes);
}

absl::StatusOr<Exit> Set(const Shell& shell, const SetArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const CellName cell, ParseCell(arguments.table, arguments.row, arguments.column));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string value, ValueOf(arguments));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  const auto write = [&](ReadWrite& t) {
    t.Set(cell, value);
    return absl::OkStatus();
  };
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp committed, Commit(cluster, write));
  PrintCommitted(std::cout, shell.json, "set", cell, committed);
  return Finish(cluster, Exit::kDone);
}

}  // namespace

void AddSet(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<SetArguments>();
  CLI::App* const command = app.add_subcommand("set", "Writes a cell");
  command->add_option("TABLE", arguments->table, "Name of the table")->required();
  command->add_option("ROW", arguments->row, "Key of the row")->required();
  command->add_option("COLUMN", arguments->column, "Name of the column")->required();
  command->add_option("VALUE", arguments->value, "The value, with escapes: \\n, \\x00, \\\\");
  command->add_option("--from", arguments->from, "Read the value from a file, without escapes; - is the standard input")
      ->type_name("FILE");
  command->footer(R"(Examples:
  percolator set accounts Bob bal 10
  percolator set accounts Bob note 'two\nlines'
  percolator set accounts Bob delta -- -7            a value that begins with a dash follows --
  percolator set pages com.example contents --from page.html
  curl -s https://example.com | percolator set pages com.example contents --from -)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Set(shell, *arguments); }); });
}

}  // namespace percolator::cli
