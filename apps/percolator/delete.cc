// percolator delete: deletes the value of a cell, in a transaction of its own.

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"

namespace percolator::cli {
namespace {

struct DeleteArguments {
  std::string table;
  std::string row;
  std::string column;
};

// What is not there is left so, without a write that observers would be told of.
absl::Status DeleteCell(ReadWrite& t, const CellName& cell) {
  const absl::StatusOr<std::optional<std::string>> value = t.Get(cell.table, cell.row, cell.column);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return absl::NotFoundError(CellText(cell) + " has no value");
  return t.Delete(cell.table, cell.row, cell.column);
}

absl::StatusOr<Exit> Delete(const Shell& shell, const DeleteArguments& arguments) {
  const absl::StatusOr<CellName> cell = ParseCell(arguments.table, arguments.row, arguments.column);
  if (!cell.ok()) return cell.status();
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster = shell.Open();
  if (!cluster.ok()) return cluster.status();
  const absl::StatusOr<Timestamp> committed = Commit(**cluster, [&](ReadWrite& t) { return DeleteCell(t, *cell); });
  if (!committed.ok()) return committed.status();
  PrintCommitted(std::cout, shell.json, "deleted", *cell, *committed);
  return Finish(**cluster, Exit::kDone);
}

}  // namespace

void AddDelete(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<DeleteArguments>();
  CLI::App* const command = app.add_subcommand("delete", "Deletes the value of a cell");
  command->add_option("TABLE", arguments->table)->required();
  command->add_option("ROW", arguments->row)->required();
  command->add_option("COLUMN", arguments->column)->required();
  command->footer(R"(Example:
  percolator delete accounts Bob bal

Snapshots of the time before still see it: percolator get accounts Bob bal --as-of -1m.
Exit code 1: the cell has no value.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Delete(shell, *arguments); }); });
}

}  // namespace percolator::cli
