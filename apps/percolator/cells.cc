// SPDX-License-Identifier: Apache-2.0

// percolator cells: shows the raw cells of a row, as in figure 4 of the paper.

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

// The cells of a column at one timestamp, by family.
using Line = std::array<std::string, kFamilyCount>;
// Columns of users, then those of Percolator, whose names begin with a zero byte. Each has its newest version first.
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
  CLI::App* const command = app.add_subcommand("cells", "Shows the raw cells of a row, as in figure 4 of the paper");
  command->add_option("TABLE", arguments->table, "Name of the table")->required();
  command->add_option("ROW", arguments->row, "Key of the row")->required();
  command->footer(R"(Example:
  percolator cells accounts Bob

Prints a line for each column and timestamp, newest first:
  DATA    a long value, at the start timestamp of its transaction
  LOCK    a lock of a transaction that is running or has died (percolator locks), at its start timestamp
  WRITE   a committed version, at its commit timestamp; it contains the value if that is short
  NOTIFY  a notification that some observer has not handled
Columns in brackets belong to Percolator: acknowledgements of observers, and rolled back transactions.
Exit code 1: the row has no cells.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Cells(shell, *arguments); }); });
}

}  // namespace percolator::cli
