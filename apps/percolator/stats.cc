// SPDX-License-Identifier: Apache-2.0

// percolator stats: shows the state of a cluster on one page.

#include <iostream>
#include <map>
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

struct StatsArguments {
  bool count = false;
};

struct TableCount {
  size_t rows = 0;
  size_t cells = 0;
  size_t bytes = 0;  // of values
};

struct State {
  Timestamp now;
  Timestamp safe_point;
  std::vector<TableDescription> tables;
  std::vector<ObserverInfo> observers;
  std::map<LockInfo::State, size_t> locks;
  Backlog backlog;
  size_t quarantined = 0;
  std::map<std::string, TableCount> counts;  // by table; only with --count
};

absl::StatusOr<TableCount> CountTable(const Snapshot& snapshot, const std::string& table) {
  TableCount count;
  for (const absl::StatusOr<ScannedRow>& row : snapshot.Scan(table)) {
    PERCOLATOR_RETURN_IF_ERROR(row.status());
    ++count.rows;
    for (const ScannedRow::Column& column : row->columns) {
      ++count.cells;
      count.bytes += column.value.size();
    }
  }
  return count;
}

absl::Status CountTables(const Cluster& cluster, State* state) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot snapshot, cluster.GetSnapshot());
  for (const TableDescription& table : state->tables) {
    PERCOLATOR_ASSIGN_OR_RETURN(state->counts[table.name], CountTable(snapshot, table.name));
  }
  return absl::OkStatus();
}

// Counts locks, notifications and quarantined notifications.
absl::Status ReadWaiting(const Cluster& cluster, Inspector& inspector, State* state) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<LockInfo> locks, inspector.ListLocks());
  for (const LockInfo& lock : locks) ++state->locks[lock.state];
  PERCOLATOR_ASSIGN_OR_RETURN(state->backlog, cluster.CountNotifications());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Quarantined> quarantined, inspector.ListQuarantine());
  state->quarantined = quarantined.size();
  return absl::OkStatus();
}

absl::StatusOr<State> ReadState(const Cluster& cluster, bool count) {
  State state;
  Inspector inspector(cluster);
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster.GetSnapshot());
  state.now = now.timestamp();
  PERCOLATOR_ASSIGN_OR_RETURN(state.safe_point, inspector.SafePoint());
  PERCOLATOR_ASSIGN_OR_RETURN(state.tables, inspector.ListTables());
  PERCOLATOR_ASSIGN_OR_RETURN(state.observers, inspector.ListObservers());
  PERCOLATOR_RETURN_IF_ERROR(ReadWaiting(cluster, inspector, &state));
  if (!count) return state;
  PERCOLATOR_RETURN_IF_ERROR(CountTables(cluster, &state));
  return state;
}

size_t LocksIn(const State& state, LockInfo::State lock_state) {
  const auto found = state.locks.find(lock_state);
  return found == state.locks.end() ? 0 : found->second;
}

size_t AllLocks(const State& state) {
  size_t all = 0;
  for (const auto& [lock_state, count] : state.locks) all += count;
  return all;
}

const char* KindText(NotificationKind kind) { return kind == NotificationKind::kWeak ? "weak" : "strong"; }

void PrintObject(const std::string& address, const State& state) {
  Json object{{"cluster", Escaped(address)}};
  SetTimestamp(&object, "now", state.now);
  SetTimestamp(&object, "safe_point", state.safe_point);
  object["locks"] = {{"alive", LocksIn(state, LockInfo::State::kAlive)},
                     {"abandoned", LocksIn(state, LockInfo::State::kAbandoned)},
                     {"committed", LocksIn(state, LockInfo::State::kCommitted)},
                     {"rolled_back", LocksIn(state, LockInfo::State::kRolledBack)}};
  object["notifications"] = {{"cells", state.backlog.cells}, {"oldest_us", state.backlog.oldest.count()}};
  object["quarantined"] = state.quarantined;
  object["observers"] = Json::array();
  for (const ObserverInfo& observer : state.observers) {
    object["observers"].push_back({{"name", observer.name},
                                   {"table", observer.table},
                                   {"column", Escaped(observer.column)},
                                   {"kind", KindText(observer.kind)}});
  }
  object["tables"] = Json::array();
  for (const TableDescription& table : state.tables) {
    Json entry{{"name", table.name}};
    if (const auto count = state.counts.find(table.name); count != state.counts.end()) {
      entry["rows"] = count->second.rows;
      entry["cells"] = count->second.cells;
      entry["bytes"] = count->second.bytes;
    }
    object["tables"].push_back(entry);
  }
  PrintJson(std::cout, object);
}

std::string Waiting(const Backlog& backlog) {
  if (backlog.cells == 0) return "none";
  return std::to_string(backlog.cells) + ", the oldest for " + AgeText(backlog.oldest);
}

std::string LocksText(const State& state) {
  const size_t all = AllLocks(state);
  const size_t alive = LocksIn(state, LockInfo::State::kAlive);
  if (all == 0) return "none";
  return std::to_string(all) + ", " + std::to_string(alive) + " of running transactions";
}

void PrintPage(const std::string& address, const State& state) {
  std::cout << "cluster        " << Escaped(address) << "\n"
            << "now            " << state.now.ToString() << "  " << TimeText(state.now) << "\n"
            << "safe point     " << state.safe_point.ToString() << "  "
            << (state.safe_point == Timestamp() ? "nothing was collected yet" : TimeText(state.safe_point)) << "\n"
            << "locks          " << LocksText(state) << "\n"
            << "notifications  " << Waiting(state.backlog) << "\n"
            << "quarantine     " << (state.quarantined == 0 ? "empty" : std::to_string(state.quarantined)) << "\n";
  std::cout << "observers" << (state.observers.empty() ? "      none" : "") << "\n";
  for (const ObserverInfo& observer : state.observers) {
    std::cout << "  " << observer.name << " of " << observer.table << ":" << Escaped(observer.column)
              << (observer.kind == NotificationKind::kWeak ? " (weak)" : "") << "\n";
  }
  std::cout << "tables" << (state.tables.empty() ? "         none" : "") << "\n";
  for (const TableDescription& table : state.tables) {
    std::cout << "  " << table.name;
    if (const auto count = state.counts.find(table.name); count != state.counts.end()) {
      std::cout << ": " << count->second.rows << " rows, " << count->second.cells << " cells, " << count->second.bytes
                << " bytes of values";
    }
    std::cout << "\n";
  }
}

absl::StatusOr<Exit> Stats(const Shell& shell, const StatsArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open());
  PERCOLATOR_ASSIGN_OR_RETURN(const State state, ReadState(cluster, arguments.count));
  if (shell.json) {
    PrintObject(shell.address, state);
  } else {
    PrintPage(shell.address, state);
  }
  return Exit::kDone;
}

}  // namespace

void AddStats(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<StatsArguments>();
  CLI::App* const command = app.add_subcommand("stats", "Shows the state of the cluster on one page");
  command->add_flag("--count", arguments->count, "Also count rows, cells and bytes, which reads all data");
  command->footer(R"(Examples:
  percolator stats
  percolator stats --count
  percolator stats --json | jq .notifications.oldest_us

Commits, conflicts and latencies are metrics of each process, not of the cluster: Cluster::metrics, Worker::metrics.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Stats(shell, *arguments); }); });
}

}  // namespace percolator::cli
