// SPDX-License-Identifier: Apache-2.0

// percolator scan: prints rows of a table from one snapshot.

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

// Characters of a value that a table shows.
constexpr size_t kMaxShown = 80;

struct ScanArguments {
  std::string table;
  std::optional<std::string> prefix;
  std::optional<std::string> start;
  std::optional<std::string> end;
  std::vector<std::string> columns;
  size_t limit = 1000;
  std::optional<std::string> as_of;
  bool full = false;
};

absl::StatusOr<ScanOptions> OptionsOf(const ScanArguments& arguments) {
  ScanOptions options;
  if (arguments.limit != 0) options.limit = arguments.limit + 1;  // one more shows whether there are more
  if (arguments.prefix.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::string prefix, Unescaped(*arguments.prefix));
    options.rows = RowRange::Prefix(prefix);
  }
  if (arguments.start.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(options.rows.start, Unescaped(*arguments.start));
  }
  if (arguments.end.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(options.rows.limit, Unescaped(*arguments.end));
  }
  for (const std::string& name : arguments.columns) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::string column, Unescaped(name));
    options.columns.push_back(std::move(column));
  }
  return options;
}

void Add(Listing* listing, const ScannedRow& row, bool full) {
  for (const ScannedRow::Column& column : row.columns) {
    Json object{{"row", Escaped(row.key)}, {"column", Escaped(column.name)}};
    SetValue(&object, column.value);
    listing->Add(
        {Escaped(row.key), Escaped(column.name), full ? Escaped(column.value) : EscapedShort(column.value, kMaxShown)},
        object);
  }
}

absl::StatusOr<Exit> Scan(const Shell& shell, const ScanArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const ScanOptions options, OptionsOf(arguments));
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot snapshot, SnapshotAt(cluster, arguments.as_of));
  Listing listing(std::cout, shell.json, {"row", "column", "value"});
  size_t count = 0;
  bool more = false;
  absl::Status status;
  for (const absl::StatusOr<ScannedRow>& row : snapshot.Scan(arguments.table, options)) {
    status = row.status();
    if (!status.ok()) break;
    if (arguments.limit != 0 && count == arguments.limit) {
      more = true;
      break;
    }
    ++count;
    Add(&listing, *row, arguments.full);
  }
  if (absl::IsNotFound(status)) return status;  // no such table
  listing.End();
  if (!status.ok()) return status;
  if (more) Note("there are more rows: --limit N prints N of them, --limit 0 all");
  if (count == 0 && !shell.json) Note("there are no such rows");
  return count == 0 ? Exit::kNothing : Exit::kDone;
}

}  // namespace

void AddScan(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<ScanArguments>();
  CLI::App* const command = app.add_subcommand("scan", "Prints rows of a table");
  command->add_option("TABLE", arguments->table, "Name of the table")->required();
  CLI::Option* const prefix =
      command->add_option("--prefix", arguments->prefix, "Only rows with this prefix")->type_name("ROW");
  command->add_option("--start", arguments->start, "Start at this row")->type_name("ROW")->excludes(prefix);
  command->add_option("--end", arguments->end, "Stop before this row")->type_name("ROW")->excludes(prefix);
  command->add_option("--columns", arguments->columns, "Only these columns")
      ->type_name("COLUMN,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--limit", arguments->limit, "Maximum number of rows; 0: all")->capture_default_str();
  command
      ->add_option("--as-of", arguments->as_of,
                   "Read a snapshot of this time: 2026-11-15T10:00:00Z, -5m, or a timestamp")
      ->type_name("TIME");
  command->add_flag("--full", arguments->full,
                    "Print values in full; otherwise a table shows 80 characters (JSON is always full)");
  command->footer(R"(Examples:
  percolator scan accounts
  percolator scan accounts --prefix B --columns bal,name
  percolator scan pages --start com.example --end com.examplf --limit 10
  percolator scan accounts --as-of 2026-11-15T10:00:00Z --json --limit 0

Exit code 1: there are no such rows.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Scan(shell, *arguments); }); });
}

}  // namespace percolator::cli
