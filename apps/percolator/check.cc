// SPDX-License-Identifier: Apache-2.0

// percolator check, percolator repair: find and remove cells that are damaged or were written by another program.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
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

constexpr std::chrono::seconds kProgressPeriod(5);
// Limits of the bad cells that one run of repair keeps in memory and erases.
constexpr size_t kMaxCells = 10'000;
constexpr size_t kMaxBytes = size_t{64} << 20;

struct CheckArguments {
  std::string table;
};

struct RepairArguments {
  std::string table;
  std::string save = "percolator-repair.jsonl";
  bool newer_format = false;
  bool yes = false;
};

Json BadCellJson(const BadCell& bad) {
  Json object = CellJson(bad.cell);
  object["family"] = FamilyName(bad.family);
  SetTimestamp(&object, "timestamp", bad.timestamp);
  object["kind"] = BadCellKindName(bad.kind);
  object["why"] = Escaped(bad.why);
  object["bytes_base64"] = absl::Base64Escape(bad.value);
  return object;
}

Listing NewBadCellListing(bool json) {
  return Listing(std::cout, json, {"table", "row", "family", "column", "timestamp", "kind", "why"});
}

void AddBadCell(Listing* listing, const BadCell& bad) {
  listing->Add({bad.cell.table, Escaped(bad.cell.row), std::string(FamilyName(bad.family)), Escaped(bad.cell.column),
                bad.timestamp.ToString(), std::string(BadCellKindName(bad.kind)), Escaped(bad.why)},
               BadCellJson(bad));
}

std::string CountsText(const CheckCounts& counts) {
  return std::to_string(counts.rows) + " rows and " + std::to_string(counts.cells) + " cells checked, " +
         std::to_string(counts.problems) + " problems, " + std::to_string(counts.notes) + " notes";
}

// Reads all cells, and prints its progress from time to time.
absl::StatusOr<CheckCounts> CheckAll(Inspector& inspector, const std::string& table,
                                     const std::function<void(const BadCell&)>& found) {
  auto last = std::chrono::steady_clock::now();
  absl::StatusOr<CheckCounts> counts = inspector.Check(table, found, [&](const CheckCounts& so_far) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kProgressPeriod) return;
    last = now;
    Note("so far " + CountsText(so_far));
  });
  // Exit code 1 would mean that problems were found.
  if (absl::IsNotFound(counts.status())) return absl::InvalidArgumentError(counts.status().message());
  return counts;
}

// With --json the summary goes to the standard error, because it is not part of the document.
void PrintSummary(bool json, const std::string& text) {
  if (json) {
    Note(text);
  } else {
    std::cout << text << "\n";
  }
}

// Checks, and prints what it finds.
absl::StatusOr<Exit> CheckAndPrint(const Shell& shell, Inspector& inspector, const std::string& table) {
  Listing listing = NewBadCellListing(shell.json);
  const absl::StatusOr<CheckCounts> counts =
      CheckAll(inspector, table, [&](const BadCell& bad) { AddBadCell(&listing, bad); });
  listing.End();
  if (!counts.ok()) return counts.status();
  PrintSummary(shell.json, CountsText(*counts));
  return counts->problems == 0 ? Exit::kDone : Exit::kNothing;
}

absl::StatusOr<Cluster> OpenForRepair(const Shell& shell) {
  ClusterOptions options = CommandOptions();
  options.for_repair = true;
  return shell.Open(Missing::kIsAnError, options);
}

absl::StatusOr<Exit> Check(const Shell& shell, const CheckArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, OpenForRepair(shell));
  Inspector inspector(cluster);
  return Finish(cluster, CheckAndPrint(shell, inspector, arguments.table));
}

// Returns true if repair erases the cell.
bool IsErased(const BadCell& bad, const RepairArguments& arguments) {
  switch (bad.kind) {
    case BadCell::Kind::kNewerFormat:
      return arguments.newer_format;
    case BadCell::Kind::kFuture:     // good if the oracle has lost its timestamps
    case BadCell::Kind::kAbandoned:  // the next transaction that finds it rolls it back
      return false;
    default:
      return true;
  }
}

struct ChosenCells {
  std::vector<BadCell> cells;
  size_t bytes = 0;
  bool more = false;  // there are more than one run erases
};

absl::StatusOr<ChosenCells> ChooseCells(Inspector& inspector, const RepairArguments& arguments) {
  ChosenCells chosen;
  const auto choose = [&](const BadCell& bad) {
    if (!IsErased(bad, arguments)) return;
    if (chosen.cells.size() >= kMaxCells || chosen.bytes >= kMaxBytes) {
      chosen.more = true;
      return;
    }
    chosen.bytes += bad.value.size();
    chosen.cells.push_back(bad);
  };
  PERCOLATOR_RETURN_IF_ERROR(CheckAll(inspector, arguments.table, choose).status());
  return chosen;
}

// Writes the cells to a new file, and returns when they are on disk.
absl::Status SaveCells(const std::string& path, const std::vector<BadCell>& cells) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    return absl::InvalidArgumentError(Escaped(path) + " exists and is not overwritten: name a new file with --save");
  }
  if (fd < 0) return absl::InvalidArgumentError("cannot create " + Escaped(path) + ": " + std::strerror(errno));
  bool good = true;
  for (const BadCell& bad : cells) {
    const std::string line = BadCellJson(bad).dump() + "\n";
    for (size_t done = 0; good && done < line.size();) {
      const ssize_t n = write(fd, line.data() + done, line.size() - done);
      if (n > 0) done += static_cast<size_t>(n);
      good = n > 0 || (n < 0 && errno == EINTR);
    }
  }
  good = good && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (good) return absl::OkStatus();
  return absl::DataLossError("cannot write " + Escaped(path) + ": " + std::strerror(error) + "; nothing was erased");
}

void PrintChosen(bool json, const ChosenCells& chosen) {
  Listing listing = NewBadCellListing(json);
  for (const BadCell& bad : chosen.cells) AddBadCell(&listing, bad);
  listing.End();
}

absl::StatusOr<size_t> EraseCells(Inspector& inspector, const std::vector<BadCell>& cells) {
  size_t erased = 0;
  for (const BadCell& bad : cells) {
    PERCOLATOR_ASSIGN_OR_RETURN(const bool done, inspector.EraseBadCell(bad));
    erased += done ? 1 : 0;
  }
  return erased;
}

absl::StatusOr<Exit> RepairCells(const Shell& shell, Inspector& inspector, const RepairArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const ChosenCells chosen, ChooseCells(inspector, arguments));
  const std::string count =
      std::to_string(chosen.cells.size()) + (chosen.more ? " cells, and more in the next run" : " cells");
  if (!arguments.yes) {
    PrintChosen(shell.json, chosen);
    PrintSummary(shell.json, "would erase " + count + (chosen.cells.empty() ? "" : ": --yes erases them"));
    return chosen.cells.empty() ? Exit::kDone : Exit::kNothing;
  }
  if (!chosen.cells.empty()) {
    PERCOLATOR_RETURN_IF_ERROR(SaveCells(arguments.save, chosen.cells));
    PERCOLATOR_ASSIGN_OR_RETURN(const size_t erased, EraseCells(inspector, chosen.cells));
    Note("saved " + count + " in " + Escaped(arguments.save) + ", erased " + std::to_string(erased));
    if (chosen.more) Note("there are more bad cells: run repair again with another --save FILE");
  }
  return CheckAndPrint(shell, inspector, arguments.table);
}

absl::StatusOr<Exit> Repair(const Shell& shell, const RepairArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, OpenForRepair(shell));
  Inspector inspector(cluster);
  return Finish(cluster, RepairCells(shell, inspector, arguments));
}

}  // namespace

void AddCheck(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* const command =
      app.add_subcommand("check", "Finds cells that are damaged or were written by another program");
  command->add_option("--table", arguments->table, "Only cells of this table");
  command->footer(R"(Examples:
  percolator check
  percolator check --table accounts --json

Reads all cells and changes nothing. The kinds of problems:
  damaged       the bytes are not a lock, write record, notification or acknowledgement
  newer-format  a newer version of Percolator may have written the record
  missing-data  the long value of a lock or write record is missing
  misplaced     the column is reserved, and Percolator does not use it
  impossible    the commit is before the start, or the primary of a lock cannot be a primary
  future        the timestamp is later than the oracle's
  abandoned     a note, not a problem: the lock of a dead transaction; the next transaction that needs it rolls it back
Exit code 1: there are problems.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Check(shell, *arguments); }); });
}

void AddRepair(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<RepairArguments>();
  CLI::App* const command = app.add_subcommand("repair", "Saves the cells that check finds to a file, and erases them");
  command->add_option("--table", arguments->table, "Only cells of this table");
  command->add_option("--save", arguments->save, "New file for the erased cells, one line of JSON each")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--newer-format", arguments->newer_format, "Also erase cells of kind newer-format");
  command->add_flag("--yes", arguments->yes, "Erase; otherwise the cells are only listed");
  command->footer(R"(Examples:
  percolator repair                                    lists the cells, and erases nothing
  percolator repair --yes --save bad-cells.jsonl

Erases only the bad version of a cell, then checks again. The data of that version is lost: without a write record,
the version before it becomes visible; without the lock of its primary, a transaction counts as rolled back. If you
have a backup, restore it instead. Cells of the kinds future and abandoned stay. One run erases at most 10,000 cells or
64 MiB.
Exit code 1: there are cells to erase; with --yes: problems remain.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Repair(shell, *arguments); }); });
}

}  // namespace percolator::cli
