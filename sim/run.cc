// SPDX-License-Identifier: Apache-2.0

#include "sim/run.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "percolator/spi/assemble.h"
#include "percolator/status_macros.h"
#include "sim/history/findings.h"
#include "sim/history/graph_checker.h"
#include "sim/history/sweep_checker.h"
#include "sim/workloads/workload.h"
#include "sim/world.h"
#include "src/base/strings.h"
#include "src/store/batching_store.h"
#include "src/txn/tables.h"

namespace percolator::sim {
namespace {

// A run under faults ends after this number of events or this time, finished or not.
constexpr uint64_t kEventsUnderFaults = 150'000;
constexpr Duration kTimeUnderFaults = std::chrono::seconds(30);
// The max number of events of a phase without faults. A phase with more is stuck.
constexpr uint64_t kManyEvents = 3'000'000;
// Observing the rest may take this many times the bound of other phases.
constexpr int kIdleBounds = 10;

// A running process: its cluster, and the number of tasks that use it.
struct Program {
  // If the run was stopped in the middle, its tasks never release the cluster, and closing it would wait for them. So
  // it must not close: one of its handles is leaked.
  ~Program() {
    if (cluster.has_value()) static_cast<void>(new Cluster(*cluster));
  }

  std::optional<Cluster> cluster;
  size_t tasks = 0;
};

class Run final : public ProcessListener {
 public:
  Run(const Plan& plan, const RunOptions& options)
      : plan_(plan),
        world_(plan.seed, plan.faults),
        invariants_(plan.cluster, options.only_history, [this] { world_.scheduler().Stop(); }),
        workload_(NewWorkload(plan.workload)),
        observers_(workload_->Observers(plan_)),
        scene_(plan_, &world_, &invariants_, workload_->Cells(plan_)) {
    std::vector<ObserverInfo> infos;
    for (const WorkloadObserver& observer : observers_) infos.push_back(observer.info);
    invariants_.Observe(infos);
    if (const auto source = workload_->Notifies(plan_)) {
      invariants_.ExpectNotified(source->table, source->column, source->notified);
    }
    world_.trace().Keep(options.trace_lines);
    for (const FaultId& fault : options.suppressed) world_.chance().Suppress(fault);
    world_.store_server().SetWatcher(&invariants_);
    world_.oracle_server().SetWatcher(&invariants_);
    world_.coordinator_server().SetWatcher(&invariants_);
  }

  RunResult Play() {
    SetUp();
    RunUnderFaults();
    HealAndDrain();
    ObserveAll();
    Check();
    if (!scene_.failed()) invariants_.CheckEnd(world_.store_server().disk());
    Judge();
    return Result();
  }

 private:
  // A role that processes take one after the other.
  struct Seat {
    Client* client = nullptr;
    std::vector<size_t> steps_left;  // by task; empty: it runs observers
    bool runs_observers() const { return steps_left.empty(); }
  };

  void SetUp();
  void RunUnderFaults();
  void HealAndDrain();
  void ObserveAll();
  void Check();
  void Judge();
  RunResult Result();

  void OnCrash(Process* process) override;
  void TakeSeat(size_t seat);
  void RunProcess(size_t seat, Client* client);
  void RunWorker(Client* client, Program* program, int number);
  void RunTask(size_t seat, size_t task, Client* client, const std::shared_ptr<Program>& program);
  std::shared_ptr<Program> StartProgram(Client* client, const ClusterOptions& options);
  void EndProgram(Program* program);
  void CreateTables();
  bool IsWorkLeft() const;
  std::unique_ptr<Worker> StartWorker(Actor* actor, bool of_all);
  void TroubleWorker(Actor* actor, Worker* worker);
  void WaitUntilIdle(Worker* worker);
  size_t ReplayAll(Worker* worker, const std::vector<Quarantined>& entries);

  // Starts a new process that only runs this task; returns when it has ended.
  void RunAlone(std::string_view name, const std::function<void(Actor&)>& task);
  void ResolveOpen(Actor& actor);
  void ReadEverything(Actor& actor);
  Duration Bound() const;
  void MustBeDone(std::string_view phase, const Scheduler::Report& report);
  void FailBy(std::string_view checker, const Findings& findings);

  const Plan plan_;
  World world_;
  Invariants invariants_;
  const std::unique_ptr<Workload> workload_;
  const std::vector<WorkloadObserver> observers_;
  Scene scene_;
  std::vector<Seat> seats_;
  size_t at_work_ = 0;    // the number of processes, with ghosts
  Duration last_end_{0};  // the time when the last one ended
  std::optional<TxnId> final_read_;
  RunCounts counts_;
};

// ----- Processes

std::shared_ptr<Program> Run::StartProgram(Client* client, const ClusterOptions& options) {
  auto program = std::make_shared<Program>();
  Process* const process = &client->process();
  Parts parts{Borrow(client->store()), Borrow(client->oracle()), Borrow(client->coordinator()), Borrow(process)};
  if (plan_.batching_store) parts.store = std::make_shared<BatchingStore>(Borrow(client->store()), process);
  for (;;) {
    absl::StatusOr<Cluster> cluster = Assemble(parts, options);
    if (cluster.ok()) {
      program->cluster = *std::move(cluster);
      return program;
    }
    if (process->crashed() || scene_.failed()) return program;
    process->Sleep(plan_.faults.latency_max);
  }
}

void Run::EndProgram(Program* program) {
  RunCounts counts;
  counts.cluster = program->cluster->metrics();
  counts_.Add(counts);
  program->cluster.reset();
}

void Run::TakeSeat(size_t seat) {
  Client* const client = world_.NewClient();
  seats_[seat].client = client;
  client->process().AddListener(this);
  ++at_work_;
  client->process().Start("main", [this, seat, client] { RunProcess(seat, client); });
}

// Called in the middle of an event, so the successor starts later.
void Run::OnCrash(Process* process) {
  const auto seat = std::find_if(seats_.begin(), seats_.end(),
                                 [&](const Seat& s) { return s.client != nullptr && &s.client->process() == process; });
  if (seat == seats_.end()) return;
  seat->client = nullptr;
  const auto number = static_cast<size_t>(seat - seats_.begin());
  const Duration pause = world_.chance().Between(process->id(), Site::kWorkload, Duration(0), plan_.faults.lease / 2);
  world_.scheduler().At(world_.now() + pause, kWorldActor, "new process", [this, number] {
    const std::vector<size_t>& left = seats_[number].steps_left;
    const bool work_left = seats_[number].runs_observers()
                               ? IsWorkLeft()
                               : std::any_of(left.begin(), left.end(), [](size_t steps) { return steps > 0; });
    if (work_left && !scene_.winding_down) TakeSeat(number);
  });
}

bool Run::IsWorkLeft() const {
  for (const Seat& seat : seats_) {
    if (std::any_of(seat.steps_left.begin(), seat.steps_left.end(), [](size_t steps) { return steps > 0; }))
      return true;
  }
  return false;
}

void Run::RunProcess(size_t seat, Client* client) {
  ClusterOptions options = plan_.cluster;
  if (plan_.one_step == Plan::OneStep::kSome) options.one_step_commit = world_.Draw(client->process(), 2) == 0;
  const std::shared_ptr<Program> program = StartProgram(client, options);
  if (!program->cluster.has_value()) {
    --at_work_;
    last_end_ = world_.now();
    return;
  }
  if (seats_[seat].runs_observers()) {
    RunWorker(client, program.get(), static_cast<int>(seat * plan_.tasks));
    EndProgram(program.get());
    --at_work_;
    last_end_ = world_.now();
    return;
  }
  program->tasks = plan_.tasks;
  for (size_t task = 0; task < plan_.tasks; ++task) {
    client->process().Start("client", [=, this] { RunTask(seat, task, client, program); });
  }
}

void Run::RunTask(size_t seat, size_t task, Client* client, const std::shared_ptr<Program>& program) {
  Actor actor(&scene_, client, &*program->cluster, static_cast<int>(seat * plan_.tasks + task));
  size_t& steps_left = seats_[seat].steps_left[task];
  while (steps_left > 0 && actor.alive() && !scene_.winding_down) {
    --steps_left;
    if (actor.Percent(plan_.gc_percent)) {
      actor.CollectGarbage();
    } else {
      workload_->Step(actor);
    }
    if (actor.alive()) actor.Sleep(plan_.think_max);
  }
  if (--program->tasks > 0) return;
  EndProgram(program.get());
  --at_work_;
  last_end_ = world_.now();
}

// ----- Observers

// Starts a worker with all observers, or with some of them, leaving the rest to other workers. Returns null if the
// process is dead. The observers use the actor as long as the worker lives.
std::unique_ptr<Worker> Run::StartWorker(Actor* actor, bool of_all) {
  WorkerOptions options = plan_.worker;
  options.add_only = !of_all;
  auto worker = std::make_unique<Worker>(actor->cluster(), options);
  for (const WorkloadObserver& observer : observers_) {
    if (!of_all && actor->Percent(40)) continue;
    const ObserverInfo& info = observer.info;
    const auto run = [this, actor, &observer](ReadWrite& t, const Notification& notification) {
      return actor->Observe(t, [&](Recorded& recorded) -> absl::Status {
        if (!scene_.winding_down && actor->Percent(plan_.failing_percent)) return absl::InternalError("fails at times");
        return observer.run(recorded, notification);
      });
    };
    worker->Observe({.name = info.name,
                     .table = info.table,
                     .column = info.column,
                     .kind = info.kind,
                     .run = run,
                     .max_concurrency = 0,
                     .max_attempts = observer.attempts});
  }
  for (;;) {
    const absl::Status started = worker->Start();
    if (started.ok()) return worker;
    if (!actor->alive()) return nullptr;
    const bool passing = IsTransient(started) || IsSnapshotTooOld(started) || absl::IsAborted(started);
    if (!passing && !GetUnknownCommit(started).has_value()) {
      scene_.Fail("worker", StrCat("a worker cannot start: ", ToPiece(started.message())));
      return nullptr;
    }
    actor->Sleep(plan_.faults.latency_max);
  }
}

// Does what an operator or a program might do with a running worker.
void Run::TroubleWorker(Actor* actor, Worker* worker) {
  const uint64_t what = actor->Draw(20);
  if (what == 0) {
    worker->Pause();
    actor->Sleep(plan_.faults.lease);
    worker->Resume();
  } else if (what == 1) {
    const ObserverInfo& info = observers_[actor->Draw(observers_.size())].info;
    if (info.kind == NotificationKind::kStrong) worker->Backfill(info.name).IgnoreError();
  } else if (what == 2) {
    const absl::StatusOr<std::vector<Quarantined>> entries = worker->ListQuarantine();
    if (!entries.ok()) return;
    for (const Quarantined& entry : *entries) worker->Replay(entry).IgnoreError();
  }
}

// Works as long as clients do, occasionally as a new worker.
void Run::RunWorker(Client* client, Program* program, int number) {
  Actor actor(&scene_, client, &*program->cluster, number);
  const auto goes_on = [&] { return actor.alive() && IsWorkLeft() && !scene_.winding_down; };
  while (goes_on()) {
    const std::unique_ptr<Worker> worker = StartWorker(&actor, !plan_.split_observers);
    if (worker == nullptr) return;
    while (goes_on() && !actor.Percent(5)) {
      TroubleWorker(&actor, worker.get());
      actor.Sleep(plan_.faults.lease);
    }
    worker->Stop().IgnoreError();
  }
}

void Run::WaitUntilIdle(Worker* worker) {
  if (scene_.failed()) return;
  if (absl::Status s = worker->WaitUntilIdle(kIdleBounds * Bound()); !s.ok()) {
    scene_.Fail("stuck", StrCat("not everything is observed: ", ToPiece(s.message())));
  }
}

// Returns the number of replayed entries.
size_t Run::ReplayAll(Worker* worker, const std::vector<Quarantined>& entries) {
  for (const Quarantined& entry : entries) {
    if (scene_.failed()) break;
    absl::Status replayed = worker->Replay(entry);
    while (IsConflict(replayed) && !scene_.failed()) replayed = worker->Replay(entry);
    if (!replayed.ok()) scene_.Fail("stuck", StrCat("cannot replay: ", ToPiece(replayed.message())));
  }
  return entries.size();
}

// N1: nothing is lost, whichever processes died. Sometimes with two workers in one process.
void Run::ObserveAll() {
  if (observers_.empty()) return;
  RunAlone("observe", [this](Actor& actor) {
    const std::unique_ptr<Worker> worker = StartWorker(&actor, true);
    const std::unique_ptr<Worker> second = actor.Percent(50) ? StartWorker(&actor, true) : nullptr;
    for (size_t left = 1, round = 0; left > 0 && !scene_.failed(); ++round) {
      WaitUntilIdle(worker.get());
      const absl::StatusOr<std::vector<Quarantined>> entries = worker->ListQuarantine();
      if (!entries.ok()) return scene_.Fail("stuck", StrCat("no quarantine: ", ToPiece(entries.status().message())));
      if (round == 0 && !scene_.failed()) workload_->CheckObserved(actor, *entries);
      left = ReplayAll(worker.get(), *entries);
    }
    if (scene_.failed()) return;
    if (second != nullptr) second->Stop().IgnoreError();
    worker->Stop().IgnoreError();
  });
}

// ----- Phases

void Run::MustBeDone(std::string_view phase, const Scheduler::Report& report) {
  if (scene_.failed() || report.ending == Scheduler::Ending::kDone) return;
  scene_.Fail("stuck",
              StrCat(phase, " has not ended after ", report.events, " events; waiting fibers:\n", report.waiting));
}

void Run::RunAlone(std::string_view name, const std::function<void(Actor&)>& task) {
  if (scene_.failed()) return;
  Client* const client = world_.NewClient(std::string(name));
  client->process().Start("main", [&, client] {
    ClusterOptions options = plan_.cluster;
    options.call_timeout = std::chrono::minutes(10);
    options.gc_period = Duration(0);
    const std::shared_ptr<Program> program = StartProgram(client, options);
    if (!program->cluster.has_value()) return;
    Actor actor(&scene_, client, &*program->cluster, -1);
    task(actor);
    EndProgram(program.get());
  });
  MustBeDone(name, world_.Run({.events = kManyEvents}));
}

void Run::CreateTables() {
  for (const std::string& table : Plan::Tables()) {
    TableSchema schema;
    for (const WorkloadObserver& observer : observers_) {
      if (observer.info.kind != NotificationKind::kWeak || observer.info.table != table) continue;
      schema.notify_only_columns.push_back(observer.info.column);
    }
    const bool plain = schema.notify_only_columns.empty();
    if (!world_.store_server().disk()->CreateTable({table, plain ? "" : EncodeSchema(schema)}).ok()) {
      scene_.Fail("setup", "no table");
    }
  }
}

void Run::SetUp() {
  const Faults::Rates rates = std::exchange(world_.kernel().faults.rates, {});
  CreateTables();
  RunAlone("setup", [this](Actor& actor) {
    // The observers are registered before the first write.
    const std::unique_ptr<Worker> worker = observers_.empty() ? nullptr : StartWorker(&actor, true);
    workload_->SetUp(actor);
    if (worker != nullptr) worker->Stop().IgnoreError();
  });
  world_.kernel().faults.rates = rates;
}

void Run::RunUnderFaults() {
  if (scene_.failed()) return;
  seats_.resize(plan_.processes);
  for (Seat& seat : seats_) seat.steps_left.assign(plan_.tasks, plan_.steps);
  if (!observers_.empty()) seats_.resize(plan_.processes + plan_.workers);
  for (size_t i = 0; i < seats_.size(); ++i) TakeSeat(i);
  world_.Run({.events = kEventsUnderFaults, .until = world_.now() + kTimeUnderFaults + 10 * plan_.faults.lease});
}

// The max time of any work that is delayed only by locks of dead processes. After a clock was set back, time stands
// still for the oracle, and with it the age of locks.
Duration Run::Bound() const {
  const Faults& faults = plan_.faults;
  // A page of a scan may be as short as a row, and each row has to be read, resolved and read again.
  const int messages = 100 + 20 * static_cast<int>(scene_.cells.size());
  return 20 * faults.lease + 2 * faults.clock_step_max + messages * faults.latency_max + faults.call_timeout;
}

void Run::HealAndDrain() {
  if (scene_.failed()) return;
  scene_.winding_down = true;
  world_.Heal();
  const Duration healed = world_.now();
  MustBeDone("draining", world_.Run({.events = kManyEvents}));
  const Duration took = last_end_ - healed;
  if (!scene_.failed() && took > Bound()) {
    scene_.Fail("stuck", StrCat("the last client ended ", took.count(), " us after faults had ended, more than ",
                                Bound().count()));
  }
}

void Run::ReadEverything(Actor& actor) {
  const Duration begun = world_.now();
  bool read = false;
  actor.Look([&](Recorded& t) {
    for (const std::string& table : Plan::Tables()) {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto found, t.Scan(table));
    }
    absl::Status status = t.Get(scene_.cells).status();
    read = status.ok();
    final_read_ = t.id();
    return status;
  });
  const Duration took = world_.now() - begun;
  if (!read) scene_.Fail("stuck", "not everything can be read without faults");
  if (took > Bound()) {
    scene_.Fail("stuck", StrCat("reading everything took ", took.count(), " us, more than ", Bound().count()));
  }
}

// T10: every outcome can be resolved, and the answer is true. Only transactions older than the safe point may have
// none.
void Run::ResolveOpen(Actor& actor) {
  for (const Scene::Open& open : scene_.open) {
    const Timestamp start_ts = open.result.start_ts;
    const absl::StatusOr<CommitResult> resolved = actor.cluster().Resolve(open.result);
    if (!resolved.ok()) {
      if (start_ts > invariants_.safe_point()) {
        scene_.Fail("T10", StrCat("T", open.txn, ", which started at ", start_ts.ToString(),
                                  ", cannot be resolved: ", ToPiece(resolved.status().message())));
      }
      continue;
    }
    if (resolved->committed()) {
      invariants_.OnCommitted(start_ts, resolved->commit_ts);
    } else {
      invariants_.OnAborted(start_ts);
    }
  }
}

void Run::Check() {
  RunAlone("check", [this](Actor& actor) {
    ResolveOpen(actor);
    ReadEverything(actor);
    workload_->Check(actor);
    const absl::StatusOr<Timestamp> collected = actor.cluster().CollectGarbage();
    if (!collected.ok()) {
      scene_.Fail("stuck", StrCat("garbage cannot be collected: ", ToPiece(collected.status().message())));
    }
    ReadEverything(actor);
    ResolveOpen(actor);
  });
}

// ----- The verdict

void Run::FailBy(std::string_view checker, const Findings& findings) {
  if (findings.ok() || scene_.failed()) return;
  scene_.Fail(StrCat(checker, ":", findings.anomalies().front().name), findings.ToString());
}

void Run::Judge() {
  History history = scene_.history.Take();
  for (const TxnId txn : scene_.as_of) history.transactions[txn].as_of = true;
  counts_.runs = scene_.runs.size();
  uint64_t unknown = 0;
  for (TxnRecord& record : history.transactions) {
    ++counts_.transactions;
    counts_.committed += record.outcome == TxnOutcome::kOk && record.commit_ts != Timestamp() ? 1 : 0;
    counts_.failed += record.outcome == TxnOutcome::kFail ? 1 : 0;
    if (record.outcome != TxnOutcome::kInfo) continue;
    ++unknown;
    // The run is over: a transaction that has not committed by now never will.
    const std::optional<Timestamp> commit_ts = invariants_.CommitOf(record.start_ts);
    record.Resolve(commit_ts.has_value() ? TxnOutcome::kOk : TxnOutcome::kFail, commit_ts.value_or(Timestamp()));
  }
  counts_.unknown = unknown - std::min(unknown, counts_.runs);
  if (scene_.failed()) return;
  FailBy("sweep", CheckSweep(history));
  if (!workload_->lists() || scene_.failed()) return;
  const GraphReport report = CheckGraph(history, {.final_read = final_read_});
  counts_.write_skews = report.write_skew_pivots;
  FailBy("graph", report.findings);
}

RunResult Run::Result() {
  counts_.events = world_.scheduler().events_run();
  counts_.processes = world_.clients().size();
  counts_.faults = world_.chance().happened().size();
  counts_.covered = world_.kernel().covered;
  return {.failure = invariants_.violation(),
          .hash = world_.hash(),
          .counts = counts_,
          .trace = world_.trace().Text(),
          .happened = world_.chance().happened()};
}

}  // namespace

void RunCounts::Add(const RunCounts& other) {
  events += other.events;
  transactions += other.transactions;
  committed += other.committed;
  failed += other.failed;
  unknown += other.unknown;
  processes += other.processes;
  faults += other.faults;
  runs += other.runs;
  write_skews += other.write_skews;
  cluster.commits += other.cluster.commits;
  cluster.conflicts += other.cluster.conflicts;
  cluster.unknown_outcomes += other.cluster.unknown_outcomes;
  cluster.store_reads += other.cluster.store_reads;
  cluster.cells_prefetched += other.cluster.cells_prefetched;
  cluster.prefetched_cells_used += other.cluster.prefetched_cells_used;
  cluster.foreign_locks_found += other.cluster.foreign_locks_found;
  cluster.rolled_forward += other.cluster.rolled_forward;
  cluster.rolled_back += other.cluster.rolled_back;
  cluster.versions_collected += other.cluster.versions_collected;
}

RunResult RunPlan(const Plan& plan, const RunOptions& options) { return Run(plan, options).Play(); }

}  // namespace percolator::sim
