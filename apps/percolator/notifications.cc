// percolator notifications: changes that observers have not all seen.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/inspect.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct NotificationsArguments {
  std::string table;
  size_t limit = 1000;
};

// Prints them, and says if there are none.
Exit Print(const Shell& shell, const std::vector<WaitingNotification>& waiting) {
  Listing listing(std::cout, shell.json, {"table", "row", "column", "since", "age", "state"});
  for (const WaitingNotification& one : waiting) {
    const std::string state = one.pending ? "being written" : "waiting";
    Json object = CellJson(one.cell);
    SetTimestamp(&object, "since", one.since);
    object["age_us"] = one.age.count();
    object["state"] = state;
    listing.Add(
        {one.cell.table, Escaped(one.cell.row), Escaped(one.cell.column), TimeText(one.since), AgeText(one.age), state},
        object);
  }
  listing.End();
  if (waiting.empty() && !shell.json) Note("there are no notifications");
  return waiting.empty() ? Exit::kNothing : Exit::kDone;
}

absl::StatusOr<Exit> List(const Shell& shell, const NotificationsArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  const size_t limit = arguments.limit == 0 ? Inspector::kAll : arguments.limit;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<WaitingNotification> waiting,
                              Inspector(cluster).ListNotifications(arguments.table, limit));
  const Exit exit = Print(shell, waiting);
  if (waiting.size() == limit) Note("there may be more: --limit N shows N of them, --limit 0 all");
  return exit;
}

absl::StatusOr<Exit> Count(const Shell& shell) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const Backlog backlog, cluster.CountNotifications(Inspector::kAll));
  if (shell.json) {
    PrintJson(std::cout, {{"cells", backlog.cells}, {"oldest_us", backlog.oldest.count()}});
  } else {
    std::cout << backlog.cells << "\n";
  }
  return Exit::kDone;
}

absl::StatusOr<Exit> Oldest(const Shell& shell, const NotificationsArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<WaitingNotification> waiting,
                              Inspector(cluster).ListNotifications(arguments.table));
  const auto oldest =
      std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
  if (oldest == waiting.end()) return Print(shell, {});
  return Print(shell, {*oldest});
}

void AddList(CLI::App& app, Shell& shell, const std::shared_ptr<NotificationsArguments>& arguments) {
  CLI::App* const command = app.add_subcommand("list", "Which cells");
  command->add_option("--table", arguments->table, "Only of this table");
  command->add_option("--limit", arguments->limit, "Maximum number; 0: all")->capture_default_str();
  command->footer("Exit code 1: there are none.");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return List(shell, *arguments); }); });
}

void AddCount(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("count", "How many cells, in all tables");
  command->callback([&shell] { shell.Choose([&shell] { return Count(shell); }); });
}

void AddOldest(CLI::App& app, Shell& shell, const std::shared_ptr<NotificationsArguments>& arguments) {
  CLI::App* const command = app.add_subcommand("oldest", "The one that waits longest");
  command->add_option("--table", arguments->table, "Only of this table");
  command->footer("Exit code 1: there are none.");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Oldest(shell, *arguments); }); });
}

}  // namespace

void AddNotifications(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<NotificationsArguments>();
  CLI::App* const command = app.add_subcommand("notifications", "Changes that observers have not all seen");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples:
  percolator notifications                     the same as notifications list
  percolator notifications list --table pages --limit 20
  percolator notifications count
  percolator notifications oldest

They wait for workers, which this program has none of. If they grow older while one runs, look at
percolator quarantine and at the metrics of the worker (docs/operating.md).)");
  command->preparse_callback(
      [&shell, arguments](size_t /*left*/) { shell.Choose([&shell, arguments] { return List(shell, *arguments); }); });
  AddList(*command, shell, arguments);
  AddCount(*command, shell);
  AddOldest(*command, shell, arguments);
}

}  // namespace percolator::cli
