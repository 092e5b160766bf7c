// SPDX-License-Identifier: Apache-2.0

// percolator locks: lists locks, and resolves those of dead transactions.

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

struct LocksArguments {
  std::string table;
  size_t limit = 1000;
  bool resolve = false;
};

std::string StateText(LockInfo::State state) {
  switch (state) {
    case LockInfo::State::kAlive:
      return "alive";
    case LockInfo::State::kAbandoned:
      return "abandoned";
    case LockInfo::State::kCommitted:
      return "committed";
    case LockInfo::State::kRolledBack:
      return "rolled back";
  }
  return "?";
}

void Add(Listing* listing, const LockInfo& lock) {
  const bool is_primary = lock.cell == lock.primary;
  Json object = CellJson(lock.cell);
  SetTimestamp(&object, "start_ts", lock.start_ts);
  object["age_us"] = lock.age.count();
  object["state"] = StateText(lock.state);
  object["session"] = lock.session;
  object["is_primary"] = is_primary;
  object["primary"] = CellJson(lock.primary);
  listing->Add(
      {lock.cell.table, Escaped(lock.cell.row), Escaped(lock.cell.column), lock.start_ts.ToString(), AgeText(lock.age),
       StateText(lock.state), std::to_string(lock.session), is_primary ? "this" : CellText(lock.primary)},
      object);
}

absl::StatusOr<Exit> List(const Shell& shell, Inspector& inspector, const LocksArguments& arguments) {
  const size_t limit = arguments.limit == 0 ? Inspector::kAll : arguments.limit;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<LockInfo> locks, inspector.ListLocks(arguments.table, limit));
  Listing listing(std::cout, shell.json,
                  {"table", "row", "column", "transaction", "age", "state", "session", "primary"});
  for (const LockInfo& lock : locks) Add(&listing, lock);
  listing.End();
  if (locks.empty() && !shell.json) Note("there are no locks");
  if (locks.size() == limit) Note("there may be more locks: --limit N lists N of them, --limit 0 all");
  return locks.empty() ? Exit::kNothing : Exit::kDone;
}

absl::StatusOr<Exit> Resolve(const Shell& shell, Inspector& inspector, const LocksArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Inspector::ResolvedLocks resolved, inspector.ResolveLocks(arguments.table));
  if (shell.json) {
    PrintJson(std::cout, {{"rolled_forward", resolved.rolled_forward},
                          {"rolled_back", resolved.rolled_back},
                          {"alive", resolved.alive}});
  } else {
    std::cout << resolved.rolled_forward << " rolled forward, " << resolved.rolled_back << " rolled back, "
              << resolved.alive << " left to running transactions\n";
  }
  return Exit::kDone;
}

absl::StatusOr<Exit> Locks(const Shell& shell, const LocksArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  Inspector inspector(cluster);
  if (!arguments.resolve) return List(shell, inspector, arguments);
  return Finish(cluster, Resolve(shell, inspector, arguments));
}

}  // namespace

void AddLocks(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<LocksArguments>();
  CLI::App* const command = app.add_subcommand("locks", "Lists the locks of running and dead transactions");
  command->add_option("--table", arguments->table, "Only locks of this table");
  command->add_option("--limit", arguments->limit, "Maximum number of locks; 0: all")->capture_default_str();
  command->add_flag("--resolve", arguments->resolve, "Roll the locks of dead transactions forward or back");
  command->footer(R"(Examples:
  percolator locks
  percolator locks --resolve

All locks of a transaction have its start timestamp. The outcome of the transaction is that of its primary. The states:
  alive        the transaction is running; readers wait for it, and writers abort
  abandoned    the process of the transaction is dead; the lock will be rolled back
  committed    the transaction has committed; the lock will be rolled forward
  rolled back  the transaction was rolled back; the lock will be too
No action is needed: the next transaction that needs the cell resolves its lock. --resolve does it now.
Exit code 1: there are no locks.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Locks(shell, *arguments); }); });
}

}  // namespace percolator::cli
