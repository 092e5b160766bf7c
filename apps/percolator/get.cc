// SPDX-License-Identifier: Apache-2.0

// percolator get: prints the value of a cell.

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct GetArguments {
  std::string table;
  std::string row;
  std::string column;
  std::optional<std::string> as_of;
  bool raw = false;
};

void Print(const GetArguments& arguments, const CellName& cell, const std::optional<std::string>& value,
           Timestamp as_of, bool json) {
  if (json) {
    Json object = CellJson(cell);
    SetTimestamp(&object, "as_of", as_of);
    object["found"] = value.has_value();
    if (value.has_value()) SetValue(&object, *value);
    PrintJson(std::cout, object);
  } else if (value.has_value()) {
    std::cout << (arguments.raw ? *value : Escaped(*value) + "\n");
  } else {
    Note(CellText(cell) + " has no value");
  }
}

absl::StatusOr<Exit> Get(const Shell& shell, const GetArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const CellName cell, ParseCell(arguments.table, arguments.row, arguments.column));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot snapshot, SnapshotAt(cluster, arguments.as_of));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, snapshot.Get(cell));
  Print(arguments, cell, value, snapshot.timestamp(), shell.json);
  return value.has_value() ? Exit::kDone : Exit::kNothing;
}

}  // namespace

void AddGet(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* const command = app.add_subcommand("get", "Prints the value of a cell");
  command->add_option("TABLE", arguments->table, "Name of the table")->required();
  command->add_option("ROW", arguments->row, "Key of the row")->required();
  command->add_option("COLUMN", arguments->column, "Name of the column")->required();
  command
      ->add_option("--as-of", arguments->as_of,
                   "Read a snapshot of this time: 2026-11-15T10:00:00Z, -5m, or a timestamp")
      ->type_name("TIME");
  command->add_flag("--raw", arguments->raw, "Print the bytes unescaped, without a line feed");
  command->footer(R"(Examples:
  percolator get accounts Bob bal
  percolator get accounts Bob bal --as-of -5m
  percolator get accounts 'key\x00with a zero byte' bal
  percolator get pages com.example contents --raw > page.html
  percolator get accounts Bob bal --json

Exit code 1: the cell has no value.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Get(shell, *arguments); }); });
}

}  // namespace percolator::cli
