// percolator stats: the state of a cluster on one page.

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/inspect.h"

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
  std::map<std::string, TableCount> counts;  // by table; only if asked for
};

absl::StatusOr<TableCount> CountTable(Snapshot& snapshot, const std::string& table) {
  TableCount count;
  const std::unique_ptr<RowIterator> rows = snapshot.Scan({.table = table});
  while (rows->Next()) {
    ++count.rows;
    for (const ScannedRow::Column& column : rows->row().columns) {
      ++count.cells;
      count.bytes += column.value.size();
    }
  }
  if (!rows->status().ok()) return rows->status();
  return count;
}

absl::Status CountTables(Cluster& cluster, State* state) {
  absl::StatusOr<Snapshot> snapshot = cluster.Now();
  if (!snapshot.ok()) return snapshot.status();
  for (const TableDescription& table : state->tables) {
    const absl::StatusOr<TableCount> count = CountTable(*snapshot, table.name);
    if (!count.ok()) return count.status();
    state->counts[table.name] = *count;
  }
  return absl::OkStatus();
}

// What waits: locks, notifications, quarantine.
absl::Status ReadWaiting(Cluster& cluster, Inspector& inspector, State* state) {
  const absl::StatusOr<std::vector<LockInfo>> locks = inspector.ListLocks();
  if (!locks.ok()) return locks.status();
  for (const LockInfo& lock : *locks) ++state->locks[lock.state];
  const absl::StatusOr<Backlog> backlog = cluster.NotificationBacklog();
  if (!backlog.ok()) return backlog.status();
  state->backlog = *backlog;
  const absl::StatusOr<std::vector<Quarantined>> quarantined = inspector.ListQuarantine();
  if (!quarantined.ok()) return quarantined.status();
  state->quarantined = quarantined->size();
  return absl::OkStatus();
}

absl::StatusOr<State> ReadState(Cluster& cluster, bool count) {
  State state;
  Inspector inspector(&cluster);
  const absl::StatusOr<Snapshot> now = cluster.Now();
  if (!now.ok()) return now.status();
  state.now = now->timestamp();
  const absl::StatusOr<Timestamp> safe_point = inspector.SafePoint();
  if (!safe_point.ok()) return safe_point.status();
  state.safe_point = *safe_point;
  absl::StatusOr<std::vector<TableDescription>> tables = inspector.ListTables();
  if (!tables.ok()) return tables.status();
  state.tables = *std::move(tables);
  absl::StatusOr<std::vector<ObserverInfo>> observers = inspector.ListObservers();
  if (!observers.ok()) return observers.status();
  state.observers = *std::move(observers);
  if (absl::Status s = ReadWaiting(cluster, inspector, &state); !s.ok()) return s;
  if (!count) return state;
  if (absl::Status s = CountTables(cluster, &state); !s.ok()) return s;
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
  return std::to_string(all) + ", " + std::to_string(alive) + " of transactions that are alive";
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
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster = shell.Open();
  if (!cluster.ok()) return cluster.status();
  const absl::StatusOr<State> state = ReadState(**cluster, arguments.count);
  if (!state.ok()) return state.status();
  if (shell.json) {
    PrintObject(shell.address, *state);
  } else {
    PrintPage(shell.address, *state);
  }
  return Exit::kDone;
}

}  // namespace

void AddStats(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<StatsArguments>();
  CLI::App* const command = app.add_subcommand("stats", "The state of the cluster on one page");
  command->add_flag("--count", arguments->count, "Also count rows, cells and bytes, which reads everything");
  command->footer(R"(Examples:
  percolator stats
  percolator stats --count
  percolator stats --json | jq .notifications.oldest_us

What one process has done since it was started (commits, conflicts, latencies) only that process knows:
Cluster::stats, Worker::Metrics.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Stats(shell, *arguments); }); });
}

}  // namespace percolator::cli
