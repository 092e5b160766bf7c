// SPDX-License-Identifier: Apache-2.0

// percolator gc: removes old versions now.

#include <iostream>
#include <memory>
#include <string>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct GcArguments {
  std::string keep = "1h";
};

void Print(const Shell& shell, Timestamp safe_point, const ClusterMetrics& stats) {
  if (shell.json) {
    Json object;
    SetTimestamp(&object, "safe_point", safe_point);
    object["versions_collected"] = stats.versions_collected;
    object["locks_rolled_forward"] = stats.rolled_forward;
    object["locks_rolled_back"] = stats.rolled_back;
    PrintJson(std::cout, object);
    return;
  }
  std::cout << "safe point  " << safe_point.ToString() << "  " << TimeText(safe_point) << "\n"
            << "versions    " << stats.versions_collected << " collected\n"
            << "locks       " << stats.rolled_forward << " rolled forward, " << stats.rolled_back << " rolled back\n";
}

absl::StatusOr<Exit> CollectGarbage(const Shell& shell, const GcArguments& arguments) {
  ClusterOptions options = CommandOptions();
  PERCOLATOR_ASSIGN_OR_RETURN(options.gc_retention, ParseDuration(arguments.keep));
  if (options.gc_retention <= options.lock_lease) {
    return absl::InvalidArgumentError("--keep must be longer than " + AgeText(options.lock_lease) +
                                      ", the lease of a lock; otherwise it would abort running transactions");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open(Missing::kIsAnError, options));
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp safe_point, cluster.CollectGarbage());
  Print(shell, safe_point, cluster.metrics());
  return Finish(cluster, Exit::kDone);
}

}  // namespace

void AddGc(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<GcArguments>();
  CLI::App* const command = app.add_subcommand("gc", "Removes old versions now");
  command
      ->add_option("--keep", arguments->keep,
                   "Keep the versions that snapshots of this age can see; longer than the lease of locks, 10s")
      ->type_name("DURATION")
      ->capture_default_str();
  command->footer(R"(Examples:
  percolator gc
  percolator gc --keep 1d

Removes the versions older than the safe point, except the newest version of each cell and the versions that open
snapshots see. Afterwards --as-of cannot read before the safe point. The safe point never moves back. Programs that
use the library collect every minute by default (ClusterOptions::gc_period, gc_retention); other commands never do.)");
  command->callback(
      [&shell, arguments] { shell.Choose([&shell, arguments] { return CollectGarbage(shell, *arguments); }); });
}

}  // namespace percolator::cli
