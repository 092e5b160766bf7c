// SPDX-License-Identifier: Apache-2.0

// percolator delete: deletes the value of a cell in one transaction.

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

struct DeleteArguments {
  std::string table;
  std::string row;
  std::string column;
};

// Returns NotFound if the cell has no value, and then writes nothing, so that no observer runs.
absl::Status DeleteCell(ReadWrite& t, const CellName& cell) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, t.Get(cell));
  if (!value.has_value()) return absl::NotFoundError(CellText(cell) + " has no value");
  t.Delete(cell);
  return absl::OkStatus();
}

absl::StatusOr<Exit> Delete(const Shell& shell, const DeleteArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const CellName cell, ParseCell(arguments.table, arguments.row, arguments.column));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp committed,
                              Commit(cluster, [&](ReadWrite& t) { return DeleteCell(t, cell); }));
  PrintCommitted(std::cout, shell.json, "deleted", cell, committed);
  return Finish(cluster, Exit::kDone);
}

}  // namespace

void AddDelete(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<DeleteArguments>();
  CLI::App* const command = app.add_subcommand("delete", "Deletes the value of a cell");
  command->add_option("TABLE", arguments->table, "Name of the table")->required();
  command->add_option("ROW", arguments->row, "Key of the row")->required();
  command->add_option("COLUMN", arguments->column, "Name of the column")->required();
  command->footer(R"(Example:
  percolator delete accounts Bob bal

Earlier snapshots still see the value: percolator get accounts Bob bal --as-of -1m.
Exit code 1: the cell has no value.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Delete(shell, *arguments); }); });
}

}  // namespace percolator::cli
