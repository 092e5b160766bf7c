// SPDX-License-Identifier: Apache-2.0

// The public class Worker, and Worker::Impl.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "percolator/cluster.h"
#include "percolator/status_macros.h"
#include "src/base/fork.h"
#include "src/base/strings.h"
#include "src/observe/quarantine.h"
#include "src/observe/run.h"
#include "src/observe/worker_impl.h"
#include "src/txn/apply.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"
#include "src/txn/tables.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

constexpr size_t kLongestName = 64;
// Rows that Backfill marks in one request.
constexpr size_t kBackfillBatch = 1000;
// Rows with marks in one page, for counting them.
constexpr size_t kBacklogPage = 1000;
// Between two checks of WaitUntilIdle.
constexpr Duration kFirstLook = std::chrono::microseconds(200);
constexpr Duration kLastLook = std::chrono::milliseconds(20);

// Hints name this cell when the observers of the cluster have changed.
const CellName& ObserversCell() {
  static const CellName* const cell = new CellName{std::string(kSystemTable), "observers", ""};
  return *cell;
}

std::string ColumnText(std::string_view table, std::string_view column) { return StrCat(table, ":", Quoted(column)); }

absl::Status Bad(const ObserverSpec& spec, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("observer ", Quoted(spec.name), ": ", why));
}

absl::Status NotStarted() { return absl::FailedPreconditionError("the worker is not started"); }

bool IsGoodName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), is_good);
}

absl::Status CheckOptions(const WorkerOptions& options) {
  if (options.threads < 1) return absl::InvalidArgumentError("WorkerOptions::threads must be at least 1");
  if (options.scanners < 0) return absl::InvalidArgumentError("WorkerOptions::scanners must not be negative");
  if (options.max_queued_cells < 1)
    return absl::InvalidArgumentError("WorkerOptions::max_queued_cells must be at least 1");
  if (options.scan_period <= Duration(0))
    return absl::InvalidArgumentError("WorkerOptions::scan_period must be positive");
  if (options.min_retry_delay < Duration(0) || options.max_retry_delay < options.min_retry_delay) {
    return absl::InvalidArgumentError(
        "WorkerOptions::min_retry_delay must not be negative or longer than max_retry_delay");
  }
  return absl::OkStatus();
}

// Checks an observer without the cluster.
absl::Status CheckSpec(const ObserverSpec& spec) {
  if (!IsGoodName(spec.name)) return Bad(spec, "its name must be [A-Za-z0-9_-]{1,64}");
  if (spec.run == nullptr) return Bad(spec, "it has no function");
  if (spec.max_concurrency < 0) return Bad(spec, "its max_concurrency is negative");
  if (spec.max_attempts < 1) return Bad(spec, "its max_attempts must be at least 1");
  if (IsReservedColumn(spec.column))
    return Bad(spec, "its column begins with a zero byte, which is reserved for Percolator");
  // Otherwise no run could read or write its acknowledgement.
  if (AckColumn(spec.column, spec.name).size() > StoreLimits().max_column_bytes) {
    return Bad(spec, "its column is too long to name the column of its acknowledgement");
  }
  return absl::OkStatus();
}

using Schemas = std::map<std::string, TableSchema>;

absl::StatusOr<Schemas> LoadSchemas(Store* store) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(store));
  Schemas schemas;
  for (const TableInfo& info : infos) {
    if (info.name == kSystemTable) continue;
    PERCOLATOR_ASSIGN_OR_RETURN(TableSchema schema, DecodeSchema(info.name, info.schema));
    schemas.emplace(info.name, std::move(schema));
  }
  return schemas;
}

absl::Status CheckAgainstSchema(const ObserverSpec& spec, const Schemas& schemas) {
  const auto schema = schemas.find(spec.table);
  if (schema == schemas.end()) {
    return absl::NotFoundError(StrCat("observer ", Quoted(spec.name), ": there is no table ", Quoted(spec.table),
                                      "; create it with Cluster::CreateTable"));
  }
  const std::vector<std::string>& weak = schema->second.notify_only_columns;
  const bool notify_only = std::find(weak.begin(), weak.end(), spec.column) != weak.end();
  const std::string column = ColumnText(spec.table, spec.column);
  if (notify_only && spec.kind == NotificationKind::kStrong) {
    return Bad(spec, StrCat("it is strong, but its column ", column, " is declared notify-only and never written"));
  }
  if (!notify_only && spec.kind == NotificationKind::kWeak) {
    return Bad(spec, StrCat("it is weak, but its column ", column, " is not declared notify-only (TableSchema)"));
  }
  return absl::OkStatus();
}

absl::Status CheckSpecs(Store* store, const std::vector<ObserverSpec>& specs) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Schemas schemas, LoadSchemas(store));
  std::set<std::string> names;
  for (const ObserverSpec& spec : specs) {
    PERCOLATOR_RETURN_IF_ERROR(CheckSpec(spec));
    if (!names.insert(spec.name).second) return Bad(spec, "its name is used twice");
    PERCOLATOR_RETURN_IF_ERROR(CheckAgainstSchema(spec, schemas));
  }
  return absl::OkStatus();
}

ObserverInfo InfoOf(const ObserverSpec& spec) { return {spec.name, spec.table, spec.column, spec.kind}; }

// Marks the column of the rows as changed, at a timestamp after that of their read.
absl::Status MarkRows(Environment& env, const std::string& table, const std::string& column,
                      const std::vector<std::string>& rows) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp ts, DrawForCall(env));
  std::vector<RowMutation> mutations;
  mutations.reserve(rows.size());
  for (const std::string& row : rows) {
    mutations.push_back({table, row, {}, {Mutation::Set(Family::kNotify, column, ts, EncodeMark({}))}});
  }
  return ApplyInTime(env, std::move(mutations), Deadline(env.runtime, env.options.call_timeout));
}

// Returns the options with functions of the user that cannot close the cluster.
WorkerOptions InUserTask(WorkerOptions options, Engine* engine) {
  if (options.on_commit == nullptr) return options;
  options.on_commit = [engine, tell = std::move(options.on_commit)](
                          std::string_view observer, const Notification& notification, Timestamp commit_ts) {
    const Engine::UserTask task(engine);
    tell(observer, notification, commit_ts);
  };
  return options;
}

// Counts commits that make marks, and the like, so that WaitUntilIdle does not end during one.
class MarksUnderWay {
 public:
  explicit MarksUnderWay(Environment* env) : env_(env) { env_->marks_begun.fetch_add(1); }
  ~MarksUnderWay() { env_->marks_ended.fetch_add(1); }
  MarksUnderWay(const MarksUnderWay&) = delete;
  MarksUnderWay& operator=(const MarksUnderWay&) = delete;

 private:
  Environment* const env_;
};

}  // namespace

// --- Start and stop

Worker::Impl::Impl(std::shared_ptr<Engine> engine, const WorkerOptions& options)
    : owner_(std::move(engine)),
      engine_(owner_.get()),
      options_(InUserTask(options, engine_)),
      changed_(engine_->env.runtime->NewWaitQueue()) {}

Worker::Impl::State Worker::Impl::state() const {
  const MutexLock lock(&mutex_);
  return state_;
}

void Worker::Impl::SetState(State state) {
  const MutexLock lock(&mutex_);
  state_ = state;
  changed_->WakeAll();
}

// From Start on, `specs_` is read without a lock.
void Worker::Impl::Observe(ObserverSpec spec) {
  const MutexLock lock(&mutex_);
  if (state_ == State::kNew) specs_.push_back(std::move(spec));
}

// The engine knows the service before anything runs: so Close waits for the start, and then stops it.
absl::Status Worker::Impl::Start() {
  PERCOLATOR_RETURN_IF_ERROR(CheckOptions(options_));
  {
    const MutexLock lock(&mutex_);
    if (state_ != State::kNew) {
      return absl::FailedPreconditionError("the worker was started before; construct a new one");
    }
    state_ = State::kStarting;
  }
  absl::Status started =
      engine_->AddService(shared_from_this()) ? engine_->InCall([this] { return StartParts(); }) : engine_->Closed();
  SetState(started.ok() ? State::kStarted : State::kNew);
  return started;
}

absl::Status Worker::Impl::StartParts() {
  PERCOLATOR_RETURN_IF_ERROR(CheckSpecs(engine_->env.store.get(), specs_));
  std::vector<ObserverInfo> own;
  for (const ObserverSpec& spec : specs_) own.push_back(InfoOf(spec));
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ObserverInfo> all, StoreObservers(engine_, own, options_.add_only));
  engine_->hints->Tell(ObserversCell());
  MakeParts();
  Reloaded(++turns_, std::move(all));
  dispatch_->Start();
  listener_ = engine_->hints->Add([this](const CellName& cell) { OnHint(cell); });
  scanner_->Start();
  const Duration period = std::max<Duration>(engine_->env.options.lock_lease / 2, Duration(1));
  refresher_ = std::make_unique<Periodic>(engine_->env.runtime, period, [this] { Refresh(); });
  return absl::OkStatus();
}

void Worker::Impl::MakeParts() {
  Engine* const engine = engine_;
  const auto claim = [this, engine](const CellName& cell) { return engine->claims->Claim(this, cell.table, cell.row); };
  const auto release = [this, engine](const CellName& cell) { engine->claims->Release(this, cell.table, cell.row); };
  DispatchCallbacks callbacks{
      .run =
          [engine](const RunRequest& request) {
            const Engine::UserTask task(engine);
            return RunObserver(engine, request);
          },
      .remove_marks = [engine](const CellName& cell,
                               Timestamp until) { return RemoveMarks(&engine->env, cell, until); },
      .quarantine =
          [engine](const ObserverInfo& observer, const CellName& cell, Timestamp tried_at, int attempts,
                   const absl::Status& error) { return Quarantine(engine, observer, cell, tried_at, attempts, error); },
      .claim = claim,
      .release = release};
  dispatch_ = std::make_unique<Dispatch>(engine->env.runtime, options_, specs_, std::move(callbacks));
  scanner_ = std::make_unique<Scanner>(
      engine, dispatch_.get(), options_,
      ScannerCallbacks{.claim = claim, .release = release, .reload = [this] { return Reload(); }});
}

absl::Status Worker::Impl::Stop() {
  if (engine_->forked()) return engine_->Closed();
  if (engine_->InUserTask()) {
    return absl::FailedPreconditionError(
        "cannot stop a worker from an observer, a load function or another callback of its cluster: Stop waits for "
        "those");
  }
  StopForClose();
  return absl::OkStatus();
}

// Of several concurrent calls, one stops and the others wait for it.
void Worker::Impl::StopForClose() {
  {
    MutexLock lock(&mutex_);
    while (state_ == State::kStarting || state_ == State::kStopping) changed_->Wait(&mutex_);
    if (state_ != State::kStarted) return;
    state_ = State::kStopping;
  }
  engine_->hints->Remove(listener_);
  refresher_.reset();
  scanner_->Stop();
  dispatch_->Stop();
  SetState(State::kStopped);
}

void Worker::Impl::Pause() {
  if (HasParts()) dispatch_->Pause();
}

void Worker::Impl::Resume() {
  if (!HasParts()) return;
  dispatch_->Resume();
  scanner_->Wake();
}

// Cluster::Close marks the engine as closing before it stops the worker. So the state is read first.
absl::Status Worker::Impl::CheckStarted() const {
  const bool started = state() == State::kStarted;
  if (engine_->closing()) return engine_->Closed();
  return started ? absl::OkStatus() : NotStarted();
}

// --- Observers of the cluster

void Worker::Impl::OnHint(const CellName& cell) {
  if (cell.table == kSystemTable) {
    {
      MutexLock lock(&mutex_);
      last_turn_ = ++turns_;  // a read under way may return the old ones
      dispatch_->RecheckObservers();
    }
    scanner_->Wake();
  } else if (options_.hints) {
    dispatch_->Hint(cell);
  }
}

// Turns are taken before reading: of two reads, the one with the later turn began later.
absl::Status Worker::Impl::Reload() {
  const uint64_t turn = ++turns_;
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ObserverInfo> infos, LoadObservers(engine_));
  Reloaded(turn, std::move(infos));
  return absl::OkStatus();
}

void Worker::Impl::Reloaded(uint64_t turn, std::vector<ObserverInfo> infos) {
  MutexLock lock(&mutex_);
  if (turn < last_turn_) return;
  last_turn_ = turn;
  infos_ = infos;
  dispatch_->SetObservers(std::move(infos));
}

// A failed read is repeated at the next turn.
void Worker::Impl::Refresh() { Reload().IgnoreError(); }

absl::StatusOr<ObserverInfo> Worker::Impl::FindObserver(std::string_view name) const {
  for (const ObserverSpec& spec : specs_) {
    if (spec.name == name) return InfoOf(spec);
  }
  MutexLock lock(&mutex_);
  for (const ObserverInfo& info : infos_) {
    if (info.name == name) return info;
  }
  return absl::NotFoundError(StrCat("there is no observer ", Quoted(name)));
}

// --- Calls of a started worker

// Idle: no job runs, there is no mark, and no commit that makes marks was under way or began in the meantime. A job
// makes marks only by a commit, so it is enough to check the jobs before and after.
absl::StatusOr<bool> Worker::Impl::IsIdle(std::string* what) {
  Environment& env = engine_->env;
  const uint64_t ended = env.marks_ended;
  const uint64_t begun = env.marks_begun;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<FoundMark> mark, scanner_->LookEverywhere());
  if (mark.has_value()) {
    const CellName& cell = mark->cell;
    *what = StrCat("there is a ", mark->pending ? "transaction under way that changes" : "notification of", " row ",
                   Quoted(cell.row), " of ", ColumnText(cell.table, cell.column));
    return false;
  }
  if (begun != ended || env.marks_begun != begun) {
    *what = "cells were being changed";
    return false;
  }
  if (dispatch_->running() > 0) {
    *what = "an observer was running";
    return false;
  }
  return true;
}

absl::Status Worker::Impl::WaitUntilIdle(Duration timeout) {
  PERCOLATOR_RETURN_IF_ERROR(CheckStarted());
  Runtime* const runtime = engine_->env.runtime;
  const Deadline deadline(runtime, timeout);
  for (Backoff backoff(runtime, kFirstLook, kLastLook);; backoff.Wait()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckStarted());
    std::string what;
    const absl::StatusOr<bool> idle = engine_->InCall([&] { return IsIdle(&what); });
    if (!idle.ok() && !IsTransient(idle.status())) return idle.status();
    if (idle.ok() && *idle) return absl::OkStatus();
    if (deadline.passed()) {
      return absl::DeadlineExceededError(StrCat("not idle: ", idle.ok() ? what : idle.status().ToString(),
                                                dispatch_->paused() ? "; the worker is paused" : ""));
    }
    if (dispatch_->running() > 0) continue;
    dispatch_->EndAllRests();
    scanner_->Wake();
  }
}

absl::Status Worker::Impl::Backfill(std::string_view observer) {
  PERCOLATOR_RETURN_IF_ERROR(CheckStarted());
  PERCOLATOR_ASSIGN_OR_RETURN(const ObserverInfo info, FindObserver(observer));
  if (info.kind == NotificationKind::kWeak) {
    return absl::InvalidArgumentError(
        StrCat("observer ", Quoted(observer), " is weak: its column has no values that could be marked"));
  }
  return engine_->InCall([&] { return MarkExisting(info); });
}

absl::Status Worker::Impl::MarkExisting(const ObserverInfo& info) {
  const MarksUnderWay under_way(&engine_->env);
  TransactionCore snapshot(engine_, TransactionOptions{.timeout = kForever});
  std::vector<std::string> batch;
  const auto mark = [&]() -> absl::Status {
    if (batch.empty()) return absl::OkStatus();
    PERCOLATOR_RETURN_IF_ERROR(MarkRows(engine_->env, info.table, info.column, batch));
    batch.clear();
    scanner_->Wake();
    return absl::OkStatus();
  };
  for (absl::StatusOr<ScannedRow>& row : snapshot.Scan(info.table, {.columns = {info.column}, .keys_only = true})) {
    if (!row.ok()) return row.status();
    batch.push_back(std::move(row->key));
    if (batch.size() < kBackfillBatch) continue;
    PERCOLATOR_RETURN_IF_ERROR(mark());
  }
  return mark();
}

std::vector<ObserverMetrics> Worker::Impl::metrics() const {
  return HasParts() ? dispatch_->metrics() : std::vector<ObserverMetrics>();
}

std::string Worker::Impl::DescribeGraph() const {
  std::vector<ObserverInfo> all;
  {
    MutexLock lock(&mutex_);
    all = infos_;
  }
  const bool started = HasParts();
  if (!started) {
    for (const ObserverSpec& spec : specs_) all.push_back(InfoOf(spec));
  }
  std::sort(all.begin(), all.end(), [](const ObserverInfo& a, const ObserverInfo& b) { return a.name < b.name; });
  const Dispatch::Triggered triggered = started ? dispatch_->triggered() : Dispatch::Triggered();
  std::string text;
  for (const ObserverInfo& info : all) {
    const auto seen = triggered.find(info.name);
    const bool is_own =
        std::any_of(specs_.begin(), specs_.end(), [&](const auto& spec) { return spec.name == info.name; });
    text += StrCat(info.name, " observes ", ColumnText(info.table, info.column),
                   info.kind == NotificationKind::kWeak ? " (weak)" : "", is_own ? "" : " (in other workers)", "\n");
    if (seen == triggered.end()) continue;
    for (const auto& [table, column] : seen->second) {
      text += StrCat("  changes ", ColumnText(table, column), ", observed by");
      for (const ObserverInfo& other : all) {
        if (other.table == table && other.column == column) text += StrCat(" ", other.name);
      }
      text += "\n";
    }
  }
  return text;
}

absl::StatusOr<std::vector<Quarantined>> Worker::Impl::ListQuarantine() const {
  return engine_->InCall([&] { return ListQuarantined(engine_); });
}

absl::Status Worker::Impl::Replay(const Quarantined& entry) {
  return engine_->InCall([&] { return ReplayQuarantined(engine_, entry); });
}

absl::Status Worker::Impl::Drop(const Quarantined& entry) {
  return engine_->InCall([&] { return DropQuarantined(engine_, entry); });
}

absl::StatusOr<Backlog> CountBacklog(Engine* engine, size_t limit) {
  Environment& env = engine->env;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, ListOwnTables(env.store.get()));
  std::set<CellName> page_cells;  // a cell may have a final mark and a pending one
  Backlog backlog;
  Timestamp oldest = Timestamp::Infinity();
  for (const TableInfo& table : tables) {
    RowRange rows = RowRange::All();
    for (bool done = table.name == kSystemTable; !done && backlog.cells < limit;) {
      const absl::StatusOr<std::vector<FoundMark>> marks = ScanMarks(&env, table.name, &rows, kBacklogPage, &done);
      if (absl::IsNotFound(marks.status())) break;  // it was dropped
      if (!marks.ok()) return marks.status();
      page_cells.clear();
      for (const FoundMark& mark : *marks) {
        if (backlog.cells + page_cells.size() == limit) break;
        page_cells.insert(mark.cell);
        oldest = std::min(oldest, mark.timestamp);
      }
      backlog.cells += page_cells.size();
    }
  }
  if (backlog.cells == 0) return backlog;
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, DrawForCall(env));
  if (now > oldest) backlog.oldest = Duration(now.value() - oldest.value());
  return backlog;
}

// --- The public class

Worker::Worker(const Cluster& cluster, const WorkerOptions& options)
    : impl_(std::make_shared<Impl>(cluster.engine(), options)) {}

Worker::~Worker() {
  Engine* const engine = impl_->engine();
  if (engine->forked()) {
    KeepUntilExit(std::move(impl_));
  } else if (engine->InUserTask()) {  // the stop may wait for the end of that task
    engine->env.runtime->Start([impl = std::move(impl_)] { impl->StopForClose(); });
  } else {
    impl_->StopForClose();
  }
}

void Worker::Observe(ObserverSpec spec) { impl_->Observe(std::move(spec)); }
void Worker::Add(std::string_view table, std::string_view column, NotificationKind kind, std::string name,
                 ObserverFunction fn, const ObserverOptions& options) {
  Observe({.name = std::move(name),
           .table = std::string(table),
           .column = std::string(column),
           .kind = kind,
           .run = std::move(fn),
           .max_concurrency = options.max_concurrency,
           .max_attempts = options.max_attempts});
}
absl::Status Worker::Start() { return impl_->Start(); }
absl::Status Worker::Stop() { return impl_->Stop(); }
void Worker::Pause() { impl_->Pause(); }
void Worker::Resume() { impl_->Resume(); }
absl::Status Worker::WaitUntilIdle(Duration timeout) { return impl_->WaitUntilIdle(timeout); }
absl::Status Worker::Backfill(std::string_view observer) { return impl_->Backfill(observer); }
std::vector<ObserverMetrics> Worker::metrics() const { return impl_->metrics(); }
std::string Worker::DescribeGraph() const { return impl_->DescribeGraph(); }
absl::StatusOr<std::vector<Quarantined>> Worker::ListQuarantine() const { return impl_->ListQuarantine(); }
absl::Status Worker::Replay(const Quarantined& entry) { return impl_->Replay(entry); }
absl::Status Worker::Drop(const Quarantined& entry) { return impl_->Drop(entry); }

}  // namespace percolator
