// SPDX-License-Identifier: Apache-2.0

// percolator notifications: lists notifications that some observer has not handled.

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

// Prints the notifications, or a note if there are none.
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
  if (waiting.size() == limit) Note("there may be more notifications: --limit N lists N of them, --limit 0 all");
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
  CLI::App* const command = app.add_subcommand("list", "Lists the cells with notifications");
  command->add_option("--table", arguments->table, "Only notifications of this table");
  command->add_option("--limit", arguments->limit, "Maximum number of cells; 0: all")->capture_default_str();
  command->footer("Exit code 1: there are no notifications.");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return List(shell, *arguments); }); });
}

void AddCount(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("count", "Counts the cells with notifications, in all tables");
  command->callback([&shell] { shell.Choose([&shell] { return Count(shell); }); });
}

void AddOldest(CLI::App& app, Shell& shell, const std::shared_ptr<NotificationsArguments>& arguments) {
  CLI::App* const command = app.add_subcommand("oldest", "Shows the oldest notification");
  command->add_option("--table", arguments->table, "Only notifications of this table");
  command->footer("Exit code 1: there are no notifications.");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Oldest(shell, *arguments); }); });
}

}  // namespace

void AddNotifications(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<NotificationsArguments>();
  CLI::App* const command = app.add_subcommand("notifications", "Lists changes that observers have not handled yet");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples:
  percolator notifications                     the same as notifications list
  percolator notifications list --table pages --limit 20
  percolator notifications count
  percolator notifications oldest

A notification waits until a worker runs its observers; this program has no worker. If notifications grow older
while a worker runs, look at percolator quarantine and at the metrics of the worker (docs/operating.md).
Exit code 1: there are no notifications.)");
  command->preparse_callback(
      [&shell, arguments](size_t /*left*/) { shell.Choose([&shell, arguments] { return List(shell, *arguments); }); });
  AddList(*command, shell, arguments);
  AddCount(*command, shell);
  AddOldest(*command, shell, arguments);
}

}  // namespace percolator::cli
