// SPDX-License-Identifier: Apache-2.0

// percolator quarantine: lists, replays and drops notifications whose observers kept failing.

#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/inspect.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

// Characters of an error in a table.
constexpr size_t kShownError = 100;

struct QuarantineArguments {
  std::string observer;
  std::optional<std::string> table;
  std::optional<std::string> row;
  std::optional<std::string> column;
  bool all = false;
};

absl::StatusOr<Exit> ListEntries(const Shell& shell) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Quarantined> entries, Inspector(cluster).ListQuarantine());
  Listing listing(std::cout, shell.json, {"observer", "table", "row", "column", "attempts", "since", "error"});
  for (const Quarantined& entry : entries) {
    Json object{{"observer", entry.observer}};
    object.update(CellJson(entry.cell));
    object["attempts"] = entry.attempts;
    SetTimestamp(&object, "since", entry.since);
    object["error"] = Escaped(entry.error);
    listing.Add({entry.observer, entry.cell.table, Escaped(entry.cell.row), Escaped(entry.cell.column),
                 std::to_string(entry.attempts), TimeText(entry.since), EscapedShort(entry.error, kShownError)},
                object);
  }
  listing.End();
  if (entries.empty() && !shell.json) Note("nothing is in quarantine");
  return entries.empty() ? Exit::kNothing : Exit::kDone;
}

// The entries that the arguments name: one, all of an observer, or all.
absl::StatusOr<std::vector<Quarantined>> Chosen(Inspector& inspector, const QuarantineArguments& arguments) {
  if (!arguments.all) {
    PERCOLATOR_ASSIGN_OR_RETURN(const CellName cell, ParseCell(*arguments.table, *arguments.row, *arguments.column));
    return std::vector<Quarantined>{{.observer = arguments.observer, .cell = cell}};
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Quarantined> entries, inspector.ListQuarantine());
  std::vector<Quarantined> chosen;
  for (const Quarantined& entry : entries) {
    if (arguments.observer.empty() || entry.observer == arguments.observer) chosen.push_back(entry);
  }
  return chosen;
}

absl::Status CheckChoice(const QuarantineArguments& arguments) {
  const bool names_cell = arguments.column.has_value();
  if (arguments.all && arguments.table.has_value()) {
    return absl::InvalidArgumentError("--all takes no TABLE, ROW and COLUMN: name only an OBSERVER, or nothing");
  }
  if (!arguments.all && !names_cell) {
    return absl::InvalidArgumentError("name OBSERVER TABLE ROW COLUMN as quarantine list shows them, or use --all");
  }
  return absl::OkStatus();
}

using EntryAction = std::function<absl::Status(Inspector& inspector, const Quarantined& entry)>;

// Applies `action` to the chosen entries. If it fails for one, it still runs for the others.
absl::StatusOr<Exit> DoEach(const Shell& shell, const QuarantineArguments& arguments, const std::string& done,
                            const EntryAction& action) {
  PERCOLATOR_RETURN_IF_ERROR(CheckChoice(arguments));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  Inspector inspector(cluster);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Quarantined> entries, Chosen(inspector, arguments));
  size_t count = 0;
  absl::Status first_error;
  for (const Quarantined& entry : entries) {
    const absl::Status status = action(inspector, entry);
    count += status.ok() ? 1 : 0;
    first_error.Update(status);
  }
  if (shell.json) {
    PrintJson(std::cout, {{done, count}});
  } else if (first_error.ok() || count > 0) {
    std::cout << done << " " << count << "\n";
  }
  if (!first_error.ok()) return Finish(cluster, first_error);
  return Finish(cluster, count == 0 ? Exit::kNothing : Exit::kDone);
}

void AddListEntries(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("list", "Lists quarantined notifications and their errors");
  command->footer("Exit code 1: nothing is in quarantine.");
  command->callback([&shell] { shell.Choose([&shell] { return ListEntries(shell); }); });
}

CLI::App* AddAction(CLI::App& app, Shell& shell, const std::string& name, const std::string& description,
                    const std::string& done, const EntryAction& action) {
  auto arguments = std::make_shared<QuarantineArguments>();
  CLI::App* const command = app.add_subcommand(name, description);
  command->add_option("OBSERVER", arguments->observer, "Name of the observer");
  command->add_option("TABLE", arguments->table, "Table of the cell");
  command->add_option("ROW", arguments->row, "Row of the cell");
  command->add_option("COLUMN", arguments->column, "Column of the cell");
  command->add_flag("--all", arguments->all, "All entries of OBSERVER, or all entries if none is named");
  command->callback([&shell, arguments, done, action] {
    shell.Choose([&shell, arguments, done, action] { return DoEach(shell, *arguments, done, action); });
  });
  return command;
}

}  // namespace

void AddQuarantine(CLI::App& app, Shell& shell) {
  CLI::App* const command =
      app.add_subcommand("quarantine", "Lists, replays and drops notifications whose observers kept failing");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples:
  percolator quarantine                                  the same as quarantine list
  percolator quarantine replay parse pages com.example contents
  percolator quarantine replay --all parse
  percolator quarantine drop --all)");
  command->preparse_callback([&shell](size_t /*left*/) { shell.Choose([&shell] { return ListEntries(shell); }); });
  AddListEntries(*command, shell);
  AddAction(*command, shell, "replay", "Runs the observer again; first fix the cause of the error", "replayed",
            [](Inspector& inspector, const Quarantined& entry) { return inspector.Replay(entry); })
      ->footer(R"(Examples:
  percolator quarantine replay parse pages com.example contents
  percolator quarantine replay --all parse               all entries of the observer parse

The next worker with the observer runs it; this program does not.
Exit code 1: there is no such entry.)");
  AddAction(*command, shell, "drop", "Deletes the entry; the observer runs again at the next change of the cell",
            "dropped", [](Inspector& inspector, const Quarantined& entry) { return inspector.Drop(entry); })
      ->footer(R"(Examples:
  percolator quarantine drop parse pages com.example contents
  percolator quarantine drop --all

Exit code 1: there is no such entry.)");
}

}  // namespace percolator::cli
