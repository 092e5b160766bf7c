#include "percolator/cluster.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "percolator/inspect.h"
#include "src/base/mutant.h"
#include "src/base/mutex.h"
#include "src/base/runtime.h"
#include "src/base/strings.h"
#include "src/cluster/address.h"
#include "src/cluster/embedded.h"
#include "src/cluster/remote.h"
#include "src/observe/loader_core.h"
#include "src/observe/registry.h"
#include "src/observe/worker_impl.h"
#include "src/store/foreign.h"
#include "src/txn/columns.h"
#include "src/txn/commit.h"
#include "src/txn/engine.h"
#include "src/txn/gc.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// Between a conflict and the next attempt.
constexpr Duration kFirstRetry = std::chrono::microseconds(100);
constexpr Duration kLastRetry = std::chrono::milliseconds(100);

// Locks are refreshed every quarter of it.
constexpr Duration kShortestLease = std::chrono::milliseconds(1);

// A pass over all data may take long. The next one waits so many times as long, so that garbage collection takes a small
// part of one core, however large the store is.
constexpr int kGcRest = 19;

absl::StatusOr<OwnedParts> OpenParts(std::string_view text, const ClusterOptions& options) {
  const absl::StatusOr<Address> address = ParseAddress(text);
  if (!address.ok()) return address.status();
  switch (address->kind) {
    case Address::Kind::kRocks:
      return OpenEmbedded(address->place, options);
    case Address::Kind::kMemory:
      return OpenInMemory();
    case Address::Kind::kServer:
      return OpenServer(*address, options);
    case Address::Kind::kBigtable:
      break;
  }
  return OpenBigtable(*address, options);
}

absl::Status CheckOptions(const ClusterOptions& options) {
  if (options.lock_lease < kShortestLease)
    return absl::InvalidArgumentError("lock_lease must be at least a millisecond");
  if (options.call_timeout <= Duration(0)) return absl::InvalidArgumentError("call_timeout must be positive");
  if (options.oracle_window < Duration(0)) return absl::InvalidArgumentError("oracle_window must not be negative");
  if (options.gc_period < Duration(0)) return absl::InvalidArgumentError("gc_period must not be negative");
  if (options.gc_retention <= options.lock_lease) {
    return absl::InvalidArgumentError(
        "gc_retention must be longer than lock_lease: else garbage collection would abort live transactions");
  }
  return absl::OkStatus();
}

absl::Status Reserved() {
  return absl::InvalidArgumentError(StrCat("the name ", kSystemTable, " is reserved for Percolator's own table"));
}

}  // namespace

class Cluster::Impl {
 public:
  Impl(OwnedParts owned, const ClusterParts& parts, std::unique_ptr<Session> session, const ClusterOptions& options)
      : owned_(std::move(owned)),
        engine_(std::make_unique<Engine>(parts.store, parts.oracle, parts.coordinator, parts.runtime,
                                         std::move(session), options)) {
    collected_ = parts.runtime->NewWaitQueue();
    const Duration report_period = std::max<Duration>(options.lock_lease / 2, Duration(1));
    reporter_ = std::make_unique<Periodic>(parts.runtime, report_period, [this] {
      ReportOldestSnapshot();
      LoadObservers(engine_.get()).IgnoreError();  // until then, with those that were known
    });
    if (options.gc_period > Duration(0)) {
      gc_ = std::make_unique<Periodic>(parts.runtime, options.gc_period, [this] { CollectInBackground(); });
    }
  }

  Engine* engine() const { return engine_.get(); }

  // Stops the tasks, finishes secondaries, closes the store if it is ours.
  absl::Status Close() {
    if (engine_ == nullptr) return absl::OkStatus();
    {
      MutexLock lock(&mutex_);
      closing_ = true;
      while (collections_ > 0) collected_->Wait(&mutex_);
    }
    gc_.reset();
    reporter_.reset();
    engine_.reset();
    owned_.coordinator.reset();
    owned_.oracle.reset();
    return owned_.store == nullptr ? absl::OkStatus() : owned_.store->Close();
  }

  absl::StatusOr<Timestamp> Collect() {
    {
      MutexLock lock(&mutex_);
      if (closing_ || engine_ == nullptr) return Closed();
      ++collections_;
    }
    absl::StatusOr<Timestamp> safe_point = CollectOnce();
    MutexLock lock(&mutex_);
    --collections_;
    collected_->WakeAll();
    return safe_point;
  }

  // The engine, unless the cluster is closed.
  absl::StatusOr<Engine*> Use() const {
    if (engine_ == nullptr) return Closed();
    return engine_.get();
  }

 private:
  static absl::Status Closed() { return absl::FailedPreconditionError("the cluster is closed"); }

  absl::StatusOr<Timestamp> CollectOnce() {
    ReportOldestSnapshot();
    const absl::StatusOr<Timestamp> safe_point = ChooseSafePoint(engine_->env);
    if (!safe_point.ok()) return safe_point.status();
    const absl::Status status =
        percolator::CollectGarbage(engine_->env, *safe_point, [this] { return closing_.load(); });
    if (!status.ok()) return status;
    return *safe_point;
  }

  // What fails here is reported at the next turn; until then garbage collection may pass an open snapshot by, whose reads
  // are errors then (G3).
  void ReportOldestSnapshot() {
    const Timestamp oldest = engine_->snapshots.Oldest();
    engine_->session->ReportOldestSnapshot(oldest == Timestamp::Infinity() ? Timestamp() : oldest).IgnoreError();
  }

  void CollectInBackground() {
    Runtime* runtime = engine_->env.runtime;
    if (runtime->Elapsed() < next_collection_) return;
    const absl::StatusOr<bool> leads = engine_->env.coordinator->Campaign("gc", *engine_->session);
    if (!leads.ok() || !*leads) return;
    const Duration begun = runtime->Elapsed();
    // An error shows in the next explicit CollectGarbage, if it lasts.
    Collect().IgnoreError();
    const Duration ended = runtime->Elapsed();
    next_collection_ = ended + kGcRest * (ended - begun);
  }

  OwnedParts owned_;
  std::unique_ptr<Engine> engine_;
  std::atomic<bool> closing_{false};
  Mutex mutex_;
  int collections_ ABSL_GUARDED_BY(mutex_) = 0;  // under way
  std::unique_ptr<WaitQueue> collected_;         // fewer are
  Duration next_collection_{};
  std::unique_ptr<Periodic> reporter_;
  std::unique_ptr<Periodic> gc_;
};

Cluster::Cluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Cluster::~Cluster() { Close().IgnoreError(); }

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Open(std::string_view address, const ClusterOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  absl::StatusOr<OwnedParts> parts = OpenParts(address, options);
  if (!parts.ok()) return parts.status();
  absl::StatusOr<std::unique_ptr<Session>> session = parts->coordinator->OpenSession();
  if (!session.ok()) return CantReach(address, session.status());
  const ClusterParts refs{parts->store.get(), parts->oracle.get(), parts->coordinator.get(), Runtime::Real()};
  return Made(std::unique_ptr<Cluster>(
      new Cluster(std::make_unique<Impl>(*std::move(parts), refs, *std::move(session), options))));
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Assemble(const ClusterParts& parts, const ClusterOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  ClusterParts refs = parts;
  if (refs.runtime == nullptr) refs.runtime = Runtime::Real();
  absl::StatusOr<std::unique_ptr<Session>> session = refs.coordinator->OpenSession();
  if (!session.ok()) return session.status();
  return Made(
      std::unique_ptr<Cluster>(new Cluster(std::make_unique<Impl>(OwnedParts{}, refs, *std::move(session), options))));
}

// What is observed has to be known before the first write.
absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Made(std::unique_ptr<Cluster> cluster) {
  const absl::Status loaded = LoadObservers(cluster->impl_->engine()).status();
  if (!loaded.ok()) return loaded;
  return cluster;
}

absl::Status Cluster::CreateTable(std::string_view name, const TableSchema& schema) {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  if (name == kSystemTable) return Reserved();
  Engine* const engine = *use;
  absl::Status status = engine->env.store->CreateTable({std::string(name), EncodeSchema(schema)});
  engine->tables.Forget();
  return status;
}

// A lock elsewhere whose primary is in this table would lose its verdict with it, and with that a committed write could be
// lost: so such locks are settled first.
absl::Status Cluster::DropTable(std::string_view name) {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  if (name == kSystemTable) return Reserved();
  Engine* const engine = *use;
  engine->secondaries.Drain();
  const absl::StatusOr<std::vector<TableInfo>> tables = ListOwnTables(engine->env.store);
  if (!tables.ok()) return tables.status();
  for (const TableInfo& table : *tables) {
    absl::Status resolved = ResolveAllLocks(
        engine->env, table.name, Timestamp(Timestamp::Infinity().value() - 1),
        [&](const MetLock& met) { return met.primary().table == name && met.cell.table != name; },
        [] { return false; });
    if (!resolved.ok() && !absl::IsNotFound(resolved)) return resolved;
  }
  absl::Status status = engine->env.store->DropTable(std::string(name));
  engine->tables.Forget();
  return status;
}

absl::StatusOr<std::vector<std::string>> Cluster::ListTables() {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  const absl::StatusOr<std::vector<TableInfo>> infos = ListOwnTables((*use)->env.store);
  if (!infos.ok()) return infos.status();
  std::vector<std::string> names;
  for (const TableInfo& info : *infos) {
    if (info.name != kSystemTable) names.push_back(info.name);
  }
  return names;
}

absl::StatusOr<Timestamp> Cluster::Transact(const std::function<absl::Status(ReadWrite& t)>& fn,
                                            const TransactOptions& options) {
  if (options.attempts < 1) return absl::InvalidArgumentError("attempts must be at least 1");
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  Runtime* const runtime = (*use)->env.runtime;
  const Duration end = runtime->Elapsed() + std::min(options.deadline, kForever);
  Backoff backoff(runtime, kFirstRetry, kLastRetry);
  std::unique_ptr<Transaction> last;  // for a mutant
  for (int attempt = 1;; ++attempt) {
    const Duration left = std::max(end - runtime->Elapsed(), Duration(1));
    auto t = std::make_unique<Transaction>(this, TransactionOptions{.deadline = left, .kind = options.kind});
    absl::Status status;
    if (MutantOn(Mutant::kRetryKeepsWrites) && last != nullptr) {
      t->core_->TakeWrites(last->core_.get());
    } else {
      status = fn(*t);
    }
    if (status.ok()) {
      const CommitResult result = t->Commit();
      if (result.committed()) return result.commit_ts;
      status = result.status;
    }
    // T12: the function is run again, on a new snapshot; what it wrote is forgotten.
    if (!absl::IsAborted(status)) return status;
    if (attempt >= options.attempts || runtime->Elapsed() >= end) return status;
    if (MutantOn(Mutant::kRetryKeepsWrites)) last = std::move(t);
    t.reset();
    backoff.Wait();
  }
}

absl::StatusOr<Snapshot> Cluster::Now() {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  const absl::StatusOr<Timestamp> ts = DrawForCall((*use)->env);
  if (!ts.ok()) return ts.status();
  return Snapshot(std::make_unique<TransactionCore>(*use, *ts));
}

absl::StatusOr<Snapshot> Cluster::AsOf(Timestamp ts) {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  Engine* const engine = *use;
  const absl::StatusOr<Timestamp> now = DrawForCall(engine->env);
  if (!now.ok()) return now.status();
  if (ts == Timestamp() || ts > *now) {
    return absl::InvalidArgumentError(
        StrCat("a snapshot as of ", ts.ToString(), " is not possible: it is now ", now->ToString()));
  }
  // Registered first, then checked: so garbage collection either sees it or is seen.
  Snapshot snapshot(std::make_unique<TransactionCore>(engine, ts));
  if (absl::Status s = CheckSnapshot(engine->env, ts); !s.ok()) return s;
  return snapshot;
}

absl::StatusOr<CommitResult> Cluster::Resolve(const CommitResult& unknown) {
  if (unknown.outcome != CommitResult::Outcome::kUnknown) return unknown;
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  Environment& env = (*use)->env;
  const Deadline deadline(env.runtime, env.options.call_timeout);
  const absl::StatusOr<Verdict> verdict = DecideOwnInTime(env, unknown.primary, unknown.start_ts, deadline);
  if (!verdict.ok()) return verdict.status();
  return FromVerdict(*verdict, unknown.primary, unknown.start_ts);
}

absl::StatusOr<Backlog> Cluster::NotificationBacklog(size_t most) {
  const absl::StatusOr<Engine*> use = impl_->Use();
  if (!use.ok()) return use.status();
  return CountBacklog(*use, most);
}

absl::StatusOr<Timestamp> Cluster::CollectGarbage() { return impl_->Collect(); }

ClusterStats Cluster::stats() const {
  if (impl_->engine() == nullptr) return {};
  const Counters& counters = impl_->engine()->env.counters;
  return {.commits = counters.commits,
          .conflicts = counters.conflicts,
          .unknown_outcomes = counters.unknown_outcomes,
          .store_reads = counters.store_reads,
          .prefetched = counters.prefetched,
          .prefetches_used = counters.prefetches_used,
          .locks_met = counters.locks_met,
          .rolled_forward = counters.rolled_forward,
          .rolled_back = counters.rolled_back,
          .versions_collected = counters.versions_collected};
}

absl::Status Cluster::Close() { return impl_->Close(); }

Transaction::Transaction(Cluster* cluster, const TransactionOptions& options)
    : ReadWrite(std::make_unique<TransactionCore>(cluster->impl_->engine(), options)) {}

Worker::Worker(Cluster* cluster, const WorkerOptions& options)
    : impl_(std::make_unique<Impl>(cluster->impl_->engine(), options)) {}

Inspector::Inspector(Cluster* cluster) : engine_(cluster->impl_->engine()) {}

Loader::Loader(Cluster* cluster, LoaderOptions options) {
  Engine* const engine = cluster->impl_->engine();
  LoaderSeams seams;
  seams.runtime = engine == nullptr ? Runtime::Real() : engine->env.runtime;
  seams.transact = [cluster](const Function& load, const TransactOptions& how, size_t* marks) {
    const auto counted = [&](ReadWrite& t) {
      absl::Status status = load(t);
      *marks = status.ok() ? t.core_->CountMarks() : 0;
      return status;
    };
    return cluster->Transact(counted, how).status();
  };
  seams.backlog = [cluster](size_t most) { return cluster->NotificationBacklog(most); };
  core_ = std::make_unique<LoaderCore>(std::move(seams), std::move(options));
}

}  // namespace percolator
