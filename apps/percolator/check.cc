// percolator check, percolator repair: cells that damage or another program has left, and their removal.

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
// Bad cells that one run of repair holds in memory and erases.
constexpr size_t kCellsAtOnce = 10'000;
constexpr size_t kBytesAtOnce = size_t{64} << 20;

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

// Reads everything, and says from time to time how far it is.
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

// The summary is no part of the document that programs read.
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

// Whether repair erases it.
bool IsErased(const BadCell& bad, const RepairArguments& arguments) {
  switch (bad.kind) {
    case BadCell::Kind::kNewerFormat:
      return arguments.newer_format;
    case BadCell::Kind::kFuture:     // if the oracle has lost its time, these cells are good
    case BadCell::Kind::kAbandoned:  // whoever meets it settles it
      return false;
    default:
      return true;
  }
}

struct ChosenCells {
  std::vector<BadCell> cells;
  size_t bytes = 0;
  bool more = false;  // than are repaired at once
};

absl::StatusOr<ChosenCells> ChooseCells(Inspector& inspector, const RepairArguments& arguments) {
  ChosenCells chosen;
  const auto choose = [&](const BadCell& bad) {
    if (!IsErased(bad, arguments)) return;
    if (chosen.cells.size() >= kCellsAtOnce || chosen.bytes >= kBytesAtOnce) {
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
    return absl::InvalidArgumentError(Escaped(path) + " exists, and is not overwritten: name a new file with --save");
  }
  if (fd < 0) return absl::InvalidArgumentError("can't create " + Escaped(path) + ": " + std::strerror(errno));
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
  return absl::DataLossError("can't write " + Escaped(path) + ": " + std::strerror(error) + ". Nothing was erased");
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
  const std::string count = std::to_string(chosen.cells.size()) + (chosen.more ? " cells, and more later" : " cells");
  if (!arguments.yes) {
    PrintChosen(shell.json, chosen);
    PrintSummary(shell.json, "would erase " + count + (chosen.cells.empty() ? "" : ": --yes does so"));
    return chosen.cells.empty() ? Exit::kDone : Exit::kNothing;
  }
  if (!chosen.cells.empty()) {
    PERCOLATOR_RETURN_IF_ERROR(SaveCells(arguments.save, chosen.cells));
    PERCOLATOR_ASSIGN_OR_RETURN(const size_t erased, EraseCells(inspector, chosen.cells));
    Note("saved " + count + " in " + Escaped(arguments.save) + ", erased " + std::to_string(erased));
    if (chosen.more) Note("there are more: repair again, with another --save FILE");
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
  CLI::App* const command = app.add_subcommand("check", "Finds cells that are damaged or not Percolator's");
  command->add_option("--table", arguments->table, "Only of this table");
  command->footer(R"(Examples:
  percolator check
  percolator check --table accounts --json

Reads all cells of all families, and changes nothing. The kinds of what it finds:
  damaged       bytes that are no lock, write record, notification or acknowledgement
  newer-format  a record that a newer Percolator may have written
  missing-data  a lock or write record of a long value that is not there
  misplaced     in a column that is reserved, and that Percolator does not have
  impossible    committed before its start, or a lock whose primary can't be one
  future        later than the oracle's time
  abandoned     no problem, a note: a lock of a dead transaction; whoever meets it rolls it back
Exit code 1: there are problems.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Check(shell, *arguments); }); });
}

void AddRepair(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<RepairArguments>();
  CLI::App* const command = app.add_subcommand("repair", "Saves the cells that check finds in a file, and erases them");
  command->add_option("--table", arguments->table, "Only of this table");
  command->add_option("--save", arguments->save, "A new file for what is erased, one line of JSON for each cell")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--newer-format", arguments->newer_format, "Also what a newer Percolator may have written");
  command->add_flag("--yes", arguments->yes, "Do it; without, it is only shown");
  command->footer(R"(Examples:
  percolator repair                                    shows what would be erased
  percolator repair --yes --save bad-cells.jsonl

Erases the bad version of a cell and nothing else, then checks again. What the cell said is lost: where it was
a write record, the version before it becomes visible; where it was the lock of a primary, its transaction
counts as rolled back. If there is a backup, restore it instead. Cells of the kinds future and abandoned stay.
Exit code 1: there is something to erase, or with --yes, there are problems left.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Repair(shell, *arguments); }); });
}

}  // namespace percolator::cli
