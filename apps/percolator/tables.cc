// SPDX-License-Identifier: Apache-2.0

// percolator tables: lists, creates and drops tables.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/inspect.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct TablesArguments {
  std::string name;
  std::vector<std::string> notify_only;
  bool yes = false;
};

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// "parse(contents)" for each observer of a table.
std::vector<std::string> ObserversOf(const std::string& table, const std::vector<ObserverInfo>& observers) {
  std::vector<std::string> names;
  for (const ObserverInfo& observer : observers) {
    if (observer.table == table) names.push_back(observer.name + "(" + Escaped(observer.column) + ")");
  }
  return names;
}

absl::StatusOr<Exit> ListTables(const Shell& shell) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  Inspector inspector(cluster);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableDescription> tables, inspector.ListTables());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<ObserverInfo> observers, inspector.ListObservers());
  Listing listing(std::cout, shell.json, {"table", "notify-only columns", "observers"});
  for (const TableDescription& table : tables) {
    std::vector<std::string> columns;
    for (const std::string& column : table.schema.notify_only_columns) columns.push_back(Escaped(column));
    const std::vector<std::string> names = ObserversOf(table.name, observers);
    listing.Add({table.name, Joined(columns), Joined(names)},
                {{"table", table.name}, {"notify_only_columns", columns}, {"observers", names}});
  }
  listing.End();
  if (tables.empty() && !shell.json) Note("there are no tables: percolator tables create NAME creates one");
  return tables.empty() ? Exit::kNothing : Exit::kDone;
}

absl::StatusOr<Exit> Create(const Shell& shell, const TablesArguments& arguments) {
  TableSchema schema;
  for (const std::string& text : arguments.notify_only) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::string column, Unescaped(text));
    schema.notify_only_columns.push_back(std::move(column));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open(Missing::kIsMade));
  PERCOLATOR_RETURN_IF_ERROR(cluster.CreateTable(arguments.name, schema));
  if (shell.json) {
    PrintJson(std::cout, {{"created", arguments.name}});
  } else {
    std::cout << "created table " << arguments.name << "\n";
  }
  return Finish(cluster, Exit::kDone);
}

absl::StatusOr<Exit> Drop(const Shell& shell, const TablesArguments& arguments) {
  if (!arguments.yes) {
    return absl::InvalidArgumentError("drop deletes all rows of table " + Escaped(arguments.name) +
                                      " with their old versions, permanently: confirm with --yes");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_RETURN_IF_ERROR(cluster.DropTable(arguments.name));
  if (shell.json) {
    PrintJson(std::cout, {{"dropped", arguments.name}});
  } else {
    std::cout << "dropped table " << arguments.name << "\n";
  }
  return Finish(cluster, Exit::kDone);
}

void AddListTables(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("list", "Lists the tables and their observers");
  command->footer("Exit code 1: there are no tables.");
  command->callback([&shell] { shell.Choose([&shell] { return ListTables(shell); }); });
}

void AddCreate(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<TablesArguments>();
  CLI::App* const command = app.add_subcommand("create", "Creates a table, and the cluster if it is the first");
  command->add_option("NAME", arguments->name, "Name of the table: at most 64 letters, digits, _ and -")->required();
  command
      ->add_option("--notify-only", arguments->notify_only,
                   "Columns that cannot be written, only notified; for weak observers")
      ->type_name("COLUMN");
  command->footer(R"(Examples:
  percolator tables create accounts
  percolator tables create pages --notify-only touched crawled)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Create(shell, *arguments); }); });
}

void AddDrop(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<TablesArguments>();
  CLI::App* const command = app.add_subcommand("drop", "Deletes a table with all its rows");
  command->add_option("NAME", arguments->name, "Name of the table")->required();
  command->add_flag("--yes", arguments->yes, "Confirm; required");
  command->footer(R"(Example:
  percolator tables drop accounts --yes

Stop all writers to the table first.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Drop(shell, *arguments); }); });
}

}  // namespace

void AddTables(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("tables", "Lists, creates and drops tables");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples:
  percolator tables                    the same as tables list
  percolator tables create accounts
  percolator tables drop accounts --yes)");
  // CLI11 runs this callback before that of a subcommand, whose choice replaces this one.
  command->preparse_callback([&shell](size_t /*left*/) { shell.Choose([&shell] { return ListTables(shell); }); });
  AddListTables(*command, shell);
  AddCreate(*command, shell);
  AddDrop(*command, shell);
}

}  // namespace percolator::cli
