// percolator quarantine: notifications whose observers kept failing, until a person decides.

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

// The entries that the arguments name: one, or all of an observer, or all.
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
    return absl::InvalidArgumentError("with --all name at most an OBSERVER");
  }
  if (!arguments.all && !names_cell) {
    return absl::InvalidArgumentError("name OBSERVER TABLE ROW COLUMN as quarantine list shows them, or say --all");
  }
  return absl::OkStatus();
}

using Deed = std::function<absl::Status(Inspector& inspector, const Quarantined& entry)>;

// Does it to the chosen entries; what fails does not keep the others from it.
absl::StatusOr<Exit> DoEach(const Shell& shell, const QuarantineArguments& arguments, const std::string& done,
                            const Deed& deed) {
  PERCOLATOR_RETURN_IF_ERROR(CheckChoice(arguments));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  Inspector inspector(cluster);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Quarantined> entries, Chosen(inspector, arguments));
  size_t count = 0;
  absl::Status first_error;
  for (const Quarantined& entry : entries) {
    const absl::Status status = deed(inspector, entry);
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
  CLI::App* const command = app.add_subcommand("list", "What was given up, and why");
  command->footer("Exit code 1: nothing was.");
  command->callback([&shell] { shell.Choose([&shell] { return ListEntries(shell); }); });
}

CLI::App* AddDeed(CLI::App& app, Shell& shell, const std::string& name, const std::string& description,
                  const std::string& done, const Deed& deed) {
  auto arguments = std::make_shared<QuarantineArguments>();
  CLI::App* const command = app.add_subcommand(name, description);
  command->add_option("OBSERVER", arguments->observer);
  command->add_option("TABLE", arguments->table);
  command->add_option("ROW", arguments->row);
  command->add_option("COLUMN", arguments->column);
  command->add_flag("--all", arguments->all, "All entries, or all of OBSERVER");
  command->callback([&shell, arguments, done, deed] {
    shell.Choose([&shell, arguments, done, deed] { return DoEach(shell, *arguments, done, deed); });
  });
  return command;
}

}  // namespace

void AddQuarantine(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("quarantine", "Notifications whose observers kept failing");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples:
  percolator quarantine                                  the same as quarantine list
  percolator quarantine replay parse pages com.example contents
  percolator quarantine replay --all parse
  percolator quarantine drop --all)");
  command->preparse_callback([&shell](size_t /*left*/) { shell.Choose([&shell] { return ListEntries(shell); }); });
  AddListEntries(*command, shell);
  AddDeed(*command, shell, "replay", "Lets the observer run again, once what was wrong is fixed", "replayed",
          [](Inspector& inspector, const Quarantined& entry) { return inspector.Replay(entry); })
      ->footer(R"(Examples:
  percolator quarantine replay parse pages com.example contents
  percolator quarantine replay --all parse               all of the observer parse

The next worker that has the observer runs it; this program does not.
Exit code 1: there is no such entry.)");
  AddDeed(*command, shell, "drop", "Forgets it; the next change of the cell is observed as usual", "dropped",
          [](Inspector& inspector, const Quarantined& entry) { return inspector.Drop(entry); })
      ->footer(R"(Examples:
  percolator quarantine drop parse pages com.example contents
  percolator quarantine drop --all

Exit code 1: there is no such entry.)");
}

}  // namespace percolator::cli
