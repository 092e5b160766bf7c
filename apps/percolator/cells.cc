// percolator cells: what transactions have left in a row of the store, as in figure 4 of the paper.

#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/inspect.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct CellsArguments {
  std::string table;
  std::string row;
};

// What a column has at one timestamp, by family.
using Line = std::array<std::string, kFamilyCount>;
// Users' columns, then Percolator's own, whose names begin with a zero byte; each newest first.
using Lines = std::map<std::pair<bool, std::string>, std::map<Timestamp, Line, std::greater<>>>;

Lines LinesOf(const std::vector<Cell>& cells) {
  Lines lines;
  for (const Cell& cell : cells) {
    const bool own = cell.column.starts_with('\0');
    lines[{own, cell.column}][cell.timestamp][static_cast<size_t>(cell.family)] = DescribeCell(cell);
  }
  return lines;
}

void PrintTable(const std::vector<Cell>& cells) {
  std::vector<std::string> titles{"column", "timestamp", "time"};
  for (int family = 0; family < kFamilyCount; ++family) {
    titles.emplace_back(FamilyName(static_cast<Family>(family)));
  }
  Listing listing(std::cout, /*json=*/false, titles);
  for (const auto& [column, versions] : LinesOf(cells)) {
    for (const auto& [timestamp, line] : versions) {
      std::vector<std::string> texts{DescribeColumn(column.second), timestamp.ToString(), TimeText(timestamp)};
      texts.insert(texts.end(), line.begin(), line.end());
      listing.Add(std::move(texts), {});
    }
  }
  listing.End();
}

void PrintArray(const std::vector<Cell>& cells) {
  Listing listing(std::cout, /*json=*/true, {});
  for (const Cell& cell : cells) {
    Json object{{"column", Escaped(cell.column)}, {"family", FamilyName(cell.family)}};
    SetTimestamp(&object, "timestamp", cell.timestamp);
    object["meaning"] = DescribeCell(cell);
    object["bytes_base64"] = absl::Base64Escape(cell.value);
    listing.Add({}, object);
  }
  listing.End();
}

absl::StatusOr<Exit> Cells(const Shell& shell, const CellsArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string row, Unescaped(arguments.row));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Cell> cells, Inspector(cluster).ReadCells(arguments.table, row));
  if (shell.json) {
    PrintArray(cells);
  } else if (cells.empty()) {
    Note("row " + Escaped(row) + " of " + Escaped(arguments.table) + " has no cells");
  } else {
    PrintTable(cells);
  }
  return cells.empty() ? Exit::kNothing : Exit::kDone;
}

}  // namespace

void AddCells(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<CellsArguments>();
  CLI::App* const command =
      app.add_subcommand("cells", "What transactions have left in a row, as in figure 4 of the paper");
  command->add_option("TABLE", arguments->table)->required();
  command->add_option("ROW", arguments->row)->required();
  command->footer(R"(Example:
  percolator cells accounts Bob

A column is shown with one line for each timestamp, newest first:
  DATA    a long value, at the start of its transaction
  LOCK    a transaction under way (or one that died: percolator locks), at its start
  WRITE   a committed version, at its commit; short values are in it
  NOTIFY  a change that observers have not all seen
Names in brackets are Percolator's own: what observers have seen, transactions that were rolled back.
Exit code 1: there is no such row.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Cells(shell, *arguments); }); });
}

}  // namespace percolator::cli
