// SPDX-License-Identifier: Apache-2.0

#include "percolator/cluster.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/utility/utility.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/runtime.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/cluster/address.h"
#include "src/cluster/embedded.h"
#include "src/cluster/remote.h"
#include "src/observe/registry.h"
#include "src/observe/worker_impl.h"
#include "src/txn/columns.h"
#include "src/txn/engine.h"
#include "src/txn/gc.h"
#include "src/txn/outcome.h"
#include "src/txn/tables.h"
#include "src/txn/transact.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// Transactions refresh their locks every quarter of the lease.
constexpr Duration kMinLease = std::chrono::milliseconds(1);

// The pause after a garbage collection pass is this many times as long as the pass, so that garbage collection uses at most
// 5% of one core, however large the store is.
constexpr int kGcRest = 19;

// Draws a fresh timestamp. Retries until call_timeout has passed or the cluster is closed.
absl::StatusOr<Timestamp> DrawForSnapshot(Engine* engine) {
  Environment& env = engine->env;
  return DrawTimestamp(env, [&] { return Deadline(env.runtime, env.options.call_timeout).Or(&engine->closed()); });
}

absl::Status InvalidOption(std::string_view name, Duration value, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("invalid option ", name, " = ", value.count(), " us: ", why));
}

absl::Status CheckOptions(const ClusterOptions& options) {
  if (options.lock_lease < kMinLease) return InvalidOption("lock_lease", options.lock_lease, "the minimum is 1 ms");
  if (options.call_timeout <= Duration(0)) {
    return InvalidOption("call_timeout", options.call_timeout, "it must be positive");
  }
  if (options.oracle_window < Duration(0)) {
    return InvalidOption("oracle_window", options.oracle_window, "it must not be negative");
  }
  if (options.gc_period < Duration(0)) {
    return InvalidOption("gc_period", options.gc_period, "it must not be negative");
  }
  if (options.gc_retention <= options.lock_lease) {
    return InvalidOption("gc_retention", options.gc_retention,
                         StrCat("it must be longer than lock_lease = ", options.lock_lease.count(),
                                " us; otherwise garbage collection would abort live transactions"));
  }
  return absl::OkStatus();
}

absl::Status Reserved() {
  return absl::InvalidArgumentError(StrCat("the table name ", kSystemTable, " is reserved for Percolator"));
}

// Ignores errors: the next turn reports again. Until then garbage collection may pass an open snapshot, whose reads then
// fail (G3).
void ReportOldestSnapshot(Engine* engine) {
  const Timestamp oldest = engine->snapshots.Oldest();
  engine->session->ReportOldestSnapshot(oldest == Timestamp::Infinity() ? Timestamp() : oldest).IgnoreError();
}

absl::StatusOr<Timestamp> Collect(Engine* engine) {
  ReportOldestSnapshot(engine);
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp safe_point, ChooseSafePoint(engine->env));
  PERCOLATOR_RETURN_IF_ERROR(CollectGarbage(engine->env, safe_point, [engine] { return engine->closed().load(); }));
  return safe_point;
}

// Collects garbage in the background if this process leads the role "gc".
class Collector {
 public:
  explicit Collector(Engine* engine) : engine_(engine) {}

  void Turn() {
    Runtime* const runtime = engine_->env.runtime;
    if (runtime->Elapsed() < next_) return;
    const absl::StatusOr<bool> leads = engine_->env.coordinator->Campaign("gc", *engine_->session);
    if (!leads.ok() || !*leads) return;
    const Duration begun = runtime->Elapsed();
    // Ignores errors: an explicit CollectGarbage reports one that lasts.
    Collect(engine_).IgnoreError();
    const Duration ended = runtime->Elapsed();
    next_ = ended + kGcRest * (ended - begun);
  }

 private:
  Engine* const engine_;
  Duration next_{};
};

absl::StatusOr<Cluster> MakeCluster(Parts parts, Engine::StoreIs store_is, std::unique_ptr<Session> session,
                                    const ClusterOptions& options, std::string_view address) {
  const std::shared_ptr<Engine> engine = Engine::Make(std::move(parts), store_is, std::move(session), options, address);
  engine->StartPeriodic(std::max<Duration>(options.lock_lease / 2, Duration(1)), [engine = engine.get()] {
    ReportOldestSnapshot(engine);
    LoadObservers(engine).IgnoreError();  // after an error, the observers loaded before remain in use
  });
  if (options.gc_period > Duration(0)) {
    const auto collector = std::make_shared<Collector>(engine.get());
    engine->StartPeriodic(options.gc_period, [collector] { collector->Turn(); });
  }
  // The observers must be known before the first write.
  absl::Status loaded = LoadObservers(engine.get()).status();
  if (!loaded.ok() && !(options.for_repair && absl::IsDataLoss(loaded))) return loaded;
  return Cluster(engine);
}

}  // namespace

absl::StatusOr<Parts> OpenParts(std::string_view address, const ClusterOptions& options) {
  PERCOLATOR_RETURN_IF_ERROR(CheckOptions(options));
  PERCOLATOR_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  switch (parsed.kind) {
    case Address::Kind::kRocks:
      return OpenEmbedded(parsed.place, options);
    case Address::Kind::kMemory:
      return OpenInMemory();
    case Address::Kind::kServer:
      return OpenServer(parsed, options);
    case Address::Kind::kBigtable:
      break;
  }
  return OpenBigtable(parsed, options);
}

absl::StatusOr<Cluster> Cluster::Open(std::string_view address, const ClusterOptions& options) {
  PERCOLATOR_ASSIGN_OR_RETURN(Parts parts, OpenParts(address, options));
  absl::StatusOr<std::unique_ptr<Session>> session = parts.coordinator->OpenSession();
  if (!session.ok()) return WithTlsHint(address, session.status());
  return MakeCluster(std::move(parts), Engine::StoreIs::kOwned, *std::move(session), options, address);
}

absl::StatusOr<Cluster> Assemble(Parts parts, const ClusterOptions& options) {
  PERCOLATOR_RETURN_IF_ERROR(CheckOptions(options));
  if (parts.store == nullptr || parts.oracle == nullptr || parts.coordinator == nullptr) {
    return absl::InvalidArgumentError("cannot assemble a cluster: it needs a store, an oracle and a coordinator");
  }
  if (parts.runtime == nullptr) parts.runtime = Borrow(Runtime::Real());
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, parts.coordinator->OpenSession());
  return MakeCluster(std::move(parts), Engine::StoreIs::kShared, std::move(session), options, {});
}

absl::Status Cluster::CreateTable(std::string_view name, const TableSchema& schema) const {
  if (name == kSystemTable) return Reserved();
  return engine_->InCall([&] {
    absl::Status status = engine_->env.store->CreateTable({std::string(name), EncodeSchema(schema)});
    engine_->tables->Forget();
    return status;
  });
}

absl::Status Cluster::EnsureTable(std::string_view name, const TableSchema& schema) const {
  constexpr int kTries = 10;  // the table may be dropped between the two steps
  for (int i = 1;; ++i) {
    absl::Status created = CreateTable(name, schema);
    if (!absl::IsAlreadyExists(created)) return created;
    absl::Status checked = engine_->InCall([&] { return CheckSchema(engine_->env.store.get(), name, schema); });
    if (!absl::IsNotFound(checked) || i == kTries) return checked;
  }
}

// Resolves the locks in other tables whose primary is in this table. Without the primary their outcome would be unknown, and
// a committed write could be lost.
absl::Status Cluster::DropTable(std::string_view name) const {
  if (name == kSystemTable) return Reserved();
  return engine_->InCall([&]() -> absl::Status {
    engine_->secondaries->Drain();
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, ListOwnTables(engine_->env.store.get()));
    for (const TableInfo& table : tables) {
      absl::Status resolved = ResolveAllLocks(
          engine_->env, table.name, Timestamp(Timestamp::Infinity().value() - 1),
          [&](const FoundLock& met) { return met.primary().table == name && met.cell.table != name; },
          [] { return false; });
      if (!resolved.ok() && !absl::IsNotFound(resolved)) return resolved;
    }
    absl::Status status = engine_->env.store->DropTable(std::string(name));
    engine_->tables->Forget();
    return status;
  });
}

absl::StatusOr<std::vector<std::string>> Cluster::ListTables() const {
  return engine_->InCall([&]() -> absl::StatusOr<std::vector<std::string>> {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(engine_->env.store.get()));
    std::vector<std::string> names;
    for (const TableInfo& info : infos) {
      if (info.name != kSystemTable) names.push_back(info.name);
    }
    return names;
  });
}

absl::Status Cluster::Run(absl::FunctionRef<absl::Status(ReadWrite& t)> fn, const TransactionOptions& options,
                          CommitResult* result) const {
  const std::shared_ptr<Engine> engine = engine_;  // `fn` may assign to this handle
  return RunTransaction(engine, fn, options, result);
}

absl::StatusOr<Snapshot> Cluster::GetSnapshot() const {
  return engine_->InCall([&]() -> absl::StatusOr<Snapshot> {
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp ts, DrawForSnapshot(engine_.get()));
    return absl::StatusOr<Snapshot>(absl::in_place, std::make_shared<TransactionCore>(engine_, ts));
  });
}

absl::StatusOr<Snapshot> Cluster::GetSnapshotAt(Timestamp ts) const {
  return engine_->InCall([&]() -> absl::StatusOr<Snapshot> {
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, DrawForSnapshot(engine_.get()));
    if (ts == Timestamp() || ts > now) {
      return absl::InvalidArgumentError(
          StrCat("cannot open a snapshot as of ", ts.ToString(), ": the current timestamp is ", now.ToString()));
    }
    // Registers the snapshot before the check: either garbage collection sees the snapshot, or the check sees garbage
    // collection.
    Snapshot snapshot(std::make_shared<TransactionCore>(engine_, ts));
    PERCOLATOR_RETURN_IF_ERROR(CheckSnapshot(engine_->env, ts));
    return snapshot;
  });
}

absl::StatusOr<CommitResult> Cluster::Resolve(const CommitResult& unknown) const {
  if (unknown.outcome != CommitResult::Outcome::kUnknown) return unknown;
  return engine_->InCall([&]() -> absl::StatusOr<CommitResult> {
    Environment& env = engine_->env;
    const Deadline deadline(env.runtime, env.options.call_timeout);
    PERCOLATOR_ASSIGN_OR_RETURN(const Verdict verdict,
                                DecideOwnInTime(env, unknown.primary, unknown.start_ts, deadline));
    return FromVerdict(verdict, unknown.primary, unknown.start_ts);
  });
}

absl::StatusOr<Backlog> Cluster::CountNotifications(size_t limit) const {
  return engine_->InCall([&] { return CountBacklog(engine_.get(), limit); });
}

absl::StatusOr<Timestamp> Cluster::CollectGarbage() const {
  return engine_->InCall([&] { return Collect(engine_.get()); });
}

ClusterMetrics Cluster::metrics() const {
  const Counters& counters = engine_->env.counters;
  return {.commits = counters.commits,
          .conflicts = counters.conflicts,
          .unknown_outcomes = counters.unknown_outcomes,
          .store_reads = counters.store_reads,
          .cells_prefetched = counters.cells_prefetched,
          .prefetched_cells_used = counters.prefetched_cells_used,
          .foreign_locks_found = counters.foreign_locks_found,
          .rolled_forward = counters.rolled_forward,
          .rolled_back = counters.rolled_back,
          .versions_collected = counters.versions_collected};
}

absl::Status Cluster::Close() const { return engine_->Close(); }

}  // namespace percolator
