// SPDX-License-Identifier: Apache-2.0

#include "src/observe/dispatch.h"

#include <algorithm>

#include "src/base/retry.h"

namespace percolator {
namespace {

using State = Job::State;
using Claim = QueuedCell::Claim;

// The minimum limit of resting cells.
constexpr size_t kMinRestingCells = 1000;

// After a conflict or a transient error, the first wait is this part of the wait after a failure.
constexpr int kShortRetry = 8;

// Returns whether the cell is worth taking up: an observer of this worker has room for it; or all of these are done and
// a foreign one, for which the marks may stay, has room.
bool IsWorthIt(const QueuedCell& cell) {
  bool any_own = false;
  bool own_open = false;
  bool foreign_open = false;
  for (const Job& job : cell.jobs) {
    const bool own = job.observer->own != nullptr;
    const bool open = !job.done_at.has_value();
    const bool has_room = job.observer->lane->HasRoom();
    if (own && open && has_room) return true;
    any_own = any_own || own;
    own_open = own_open || (own && open);
    foreign_open = foreign_open || (!own && open && has_room);
  }
  return any_own && !own_open && foreign_open;
}

}  // namespace

Dispatch::Dispatch(Runtime* runtime, const WorkerOptions& options, std::vector<ObserverSpec> own,
                   DispatchCallbacks callbacks)
    : runtime_(runtime),
      options_(options),
      callbacks_(std::move(callbacks)),
      changed_(runtime->NewWaitQueue()),
      observers_(std::move(own), options),
      resting_(std::max(options.max_queued_cells, kMinRestingCells), std::min(options.scan_period, kForever)) {}

Dispatch::~Dispatch() { Stop(); }

// --- Observers

void Dispatch::SetObservers(std::vector<ObserverInfo> all) {
  MutexLock lock(&mutex_);
  doubted_ = false;
  if (!observers_.Set(std::move(all))) return;
  // Queued cells keep the observers that they know. They must not remove marks that a new observer has not seen (N1).
  for (const auto& [name, cell] : cells_) cell->stale = true;
  resting_.Clear();
}

void Dispatch::RecheckObservers() {
  MutexLock lock(&mutex_);
  doubted_ = true;
}

bool Dispatch::doubts_observers() const {
  MutexLock lock(&mutex_);
  return doubted_;
}

Dispatch::Interest Dispatch::InterestIn(std::string_view table, std::string_view column) const {
  MutexLock lock(&mutex_);
  const ColumnObservers observers = observers_.Find(table, column);
  if (observers == nullptr) return Interest::kNone;
  const bool ours = std::any_of(observers->begin(), observers->end(), [](const auto& o) { return o.own != nullptr; });
  return ours ? Interest::kOurs : Interest::kOthers;
}

std::set<std::string> Dispatch::ObservedTables() const {
  MutexLock lock(&mutex_);
  return observers_.Tables();
}

// --- Taking up cells

void Dispatch::Hint(const CellName& cell) {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_) return;
  resting_.Forget(cell);
  const auto it = cells_.find(cell);
  if (it == cells_.end()) {
    TakeUp(cell);
    return;
  }
  const std::shared_ptr<QueuedCell>& queued = it->second;
  if (queued->claim == Claim::kRefused) queued->claim = Claim::kNone;
  for (size_t i = 0; i < queued->jobs.size(); ++i) {
    Job& job = queued->jobs[i];
    // A running job may have started before the change. One that is ready or waits will see it.
    if (job.state == State::kRunning) job.again = true;
    if (job.state == State::kDone) MakeReady({queued, i});
  }
}

bool Dispatch::Offer(const CellName& cell, bool claimed) {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_ || cells_.contains(cell) || resting_.IsResting(cell, runtime_->Elapsed())) return false;
  const std::shared_ptr<QueuedCell> queued = TakeUp(cell);
  if (queued == nullptr) return false;
  if (claimed) queued->claim = Claim::kHeld;
  return true;
}

std::shared_ptr<QueuedCell> Dispatch::TakeUp(const CellName& cell) {
  const ColumnObservers observers = observers_.Find(cell.table, cell.column);
  if (observers == nullptr || IsFull()) return nullptr;
  auto queued = std::make_shared<QueuedCell>();
  queued->name = cell;
  queued->observers = observers;
  for (const ClusterObserver& observer : *observers) queued->jobs.push_back({.observer = &observer});
  resting_.Recall(queued.get());
  if (!IsWorthIt(*queued)) return nullptr;
  for (size_t i = 0; i < queued->jobs.size(); ++i) {
    Job& job = queued->jobs[i];
    if (job.done_at.has_value()) continue;
    if (job.observer->lane->HasRoom()) {
      MakeReady({queued, i});
    } else {
      job.left_out = true;
    }
  }
  resting_.Forget(cell);
  cells_.emplace(cell, queued);
  return queued;
}

// N11: each observer of this worker has at least one place, even if the others use all of theirs.
bool Dispatch::IsFull() const { return cells_.size() >= std::max(options_.max_queued_cells, observers_.own().size()); }

bool Dispatch::Has(const CellName& cell) const {
  MutexLock lock(&mutex_);
  return cells_.contains(cell) || resting_.IsResting(cell, runtime_->Elapsed());
}

bool Dispatch::HasRoom() const {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_) return false;
  const auto& own = observers_.own();
  if (own.empty()) return true;
  if (IsFull()) return false;
  return std::any_of(own.begin(), own.end(), [](const auto& observer) { return observer->lane().HasRoom(); });
}

void Dispatch::EndAllRests() {
  MutexLock lock(&mutex_);
  resting_.EndAll();
}

size_t Dispatch::running() const {
  MutexLock lock(&mutex_);
  return running_;
}

// --- Start and stop

void Dispatch::Start() {
  {
    MutexLock lock(&mutex_);
    threads_ = options_.threads;
  }
  for (int i = 0; i < options_.threads; ++i) runtime_->Start([this] { RunJobs(); });
}

void Dispatch::Stop() {
  std::vector<CellName> claimed;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    claimed = DropPending();
    changed_->WakeAll();
    while (threads_ > 0) changed_->Wait(&mutex_);
  }
  ReleaseClaims(claimed);
}

void Dispatch::Pause() {
  std::vector<CellName> claimed;
  {
    MutexLock lock(&mutex_);
    paused_ = true;
    claimed = DropPending();
  }
  ReleaseClaims(claimed);
}

void Dispatch::Resume() {
  MutexLock lock(&mutex_);
  paused_ = false;
  changed_->WakeAll();
}

bool Dispatch::paused() const {
  MutexLock lock(&mutex_);
  return paused_;
}

std::vector<CellName> Dispatch::DropPending() {
  std::vector<CellName> claimed;
  for (auto it = cells_.begin(); it != cells_.end();) {
    QueuedCell& cell = *it->second;
    bool busy = cell.ending;
    for (Job& job : cell.jobs) {
      job.again = false;
      if (job.state == State::kRunning) busy = true;
      if (job.state == State::kReady || job.state == State::kWaiting) MakeDone(&job, /*left_out=*/true);
    }
    if (busy) {
      ++it;  // the thread that works on it ends it
      continue;
    }
    if (cell.claim == Claim::kHeld) claimed.push_back(cell.name);
    it = cells_.erase(it);
  }
  for (Lane* lane : observers_.lanes()) lane->Clear();
  retries_.Clear();
  return claimed;
}

void Dispatch::ReleaseClaims(const std::vector<CellName>& cells) const {
  for (const CellName& cell : cells) callbacks_.release(cell);
}

// --- Threads

void Dispatch::RunJobs() {
  while (const std::optional<Attempt> attempt = WaitForAttempt()) {
    const AttemptResult result = Execute(*attempt, callbacks_, options_);
    const CellName& cell = attempt->request.cell;
    FollowUp next = Finish(*attempt, result);
    while (next.remove_until.has_value()) {
      // A scanner finds marks that stay.
      callbacks_.remove_marks(cell, *next.remove_until).IgnoreError();
      next = MarksRemoved(attempt->job);
    }
    if (next.release_claim) callbacks_.release(cell);
  }
  MutexLock lock(&mutex_);
  if (--threads_ == 0) changed_->WakeAll();
}

// Returns nullopt when it is time to stop.
std::optional<Attempt> Dispatch::WaitForAttempt() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const Duration now = runtime_->Elapsed();
    while (const std::optional<JobRef> due = retries_.TakeDue(now)) MakeReady(*due);
    if (std::optional<JobRef> ready = NextReady()) return Begin(*std::move(ready));
    if (const std::optional<Duration> due = retries_.NextDue()) {
      changed_->WaitFor(&mutex_, std::max(*due - runtime_->Elapsed(), Duration(1)));
    } else {
      changed_->Wait(&mutex_);
    }
  }
  return std::nullopt;
}

// N11: from the lanes in turn.
std::optional<JobRef> Dispatch::NextReady() {
  const std::vector<Lane*>& lanes = observers_.lanes();
  for (size_t i = 0; i < lanes.size(); ++i) {
    const size_t at = (next_lane_ + i) % lanes.size();
    if (std::optional<JobRef> ref = lanes[at]->StartNext()) {
      next_lane_ = at + 1;
      return ref;
    }
  }
  return std::nullopt;
}

Attempt Dispatch::Begin(JobRef ref) {
  QueuedCell& cell = *ref.cell;
  Job& job = ref.job();
  job.state = State::kRunning;
  job.again = false;
  ++running_;
  Attempt attempt;
  attempt.observer = job.observer;
  attempt.request = {.observer = &job.observer->info,
                     .run = job.observer->own == nullptr ? nullptr : &job.observer->own->run(),
                     .cell = cell.name,
                     .others_done_at = doubted_ ? std::nullopt : cell.AllDoneAt(/*except=*/&job),
                     .max_chain = options_.max_chain};
  attempt.failures = job.failures;
  attempt.claim_refused = cell.claim == Claim::kRefused;
  if (options_.claims && cell.claim == Claim::kNone) {
    attempt.ask_claim = true;
    cell.claim = Claim::kAsking;
  }
  attempt.job = std::move(ref);
  return attempt;
}

// --- States of a job

void Dispatch::MakeReady(const JobRef& ref) {
  Job& job = ref.job();
  if (job.state == State::kDone) {
    job.observer->lane->AddPending();
    job.since = runtime_->Elapsed();
  }
  job.state = State::kReady;
  job.left_out = false;
  job.observer->lane->Push(ref);
  changed_->WakeOne();
}

void Dispatch::MakeDone(Job* job, bool left_out) {
  if (job->state != State::kDone) job->observer->lane->RemovePending();
  job->state = State::kDone;
  job->again = false;
  job->left_out = left_out;
}

void Dispatch::RetryLater(const JobRef& ref, Duration first, Duration max, int failures) {
  Job& job = ref.job();
  job.state = State::kWaiting;
  job.again = false;  // the next run will see it
  job.retry_at = runtime_->Elapsed() + RetryDelay(first, max, failures, runtime_->Random());
  retries_.Add(ref);
  changed_->WakeOne();
}

// --- After an attempt

Dispatch::FollowUp Dispatch::Finish(const Attempt& attempt, const AttemptResult& result) {
  MutexLock lock(&mutex_);
  QueuedCell& cell = *attempt.job.cell;
  Job& job = attempt.job.job();
  job.observer->lane->EndRun();
  --running_;
  if (result.claim_refused) {
    cell.claim = Claim::kRefused;
    MakeDone(&job, /*left_out=*/true);
  } else {
    if (attempt.ask_claim) cell.claim = Claim::kHeld;
    Count(attempt, result);
    ApplyOutcome(attempt, result);
  }
  // No thread would take up a job that has to run again: other workers find its mark.
  if ((paused_ || stopping_) && job.state != State::kDone) MakeDone(&job, /*left_out=*/true);
  if (result.outcome.kind != RunOutcome::Kind::kConflict && cell.OnlyWaits()) {
    // N11: while the row waits long, another worker may have work there. The next attempt claims it again.
    if (cell.claim != Claim::kHeld) return {};
    cell.claim = Claim::kNone;
    return {.release_claim = true};
  }
  if (cell.ending || !cell.IsDone()) return {};
  cell.ending = true;
  ++running_;
  return ContinueEnd(&cell);
}

void Dispatch::Count(const Attempt& attempt, const AttemptResult& result) {
  OwnObserver* const own = attempt.observer->own;
  if (own == nullptr) return;
  own->Count(result.outcome);
  if (result.quarantined_at.has_value() && result.quarantined_at->ok()) own->CountQuarantined();
}

void Dispatch::ApplyOutcome(const Attempt& attempt, const AttemptResult& result) {
  const RunOutcome& outcome = result.outcome;
  QueuedCell& cell = *attempt.job.cell;
  Job& job = attempt.job.job();
  switch (outcome.kind) {
    case RunOutcome::Kind::kNoMark:
      return NoMark(attempt.job);
    case RunOutcome::Kind::kClean:
    case RunOutcome::Kind::kCommitted:
      if (outcome.marks_removed && attempt.request.others_done_at.has_value()) {
        const Timestamp until = std::min(outcome.start_ts, *attempt.request.others_done_at);
        cell.removed_until = std::max(cell.removed_until, until);
      }
      return DoneAt(attempt.job, outcome.start_ts);
    case RunOutcome::Kind::kDirty:
      return MakeDone(&job, /*left_out=*/true);
    case RunOutcome::Kind::kConflict:
      return RetryLater(attempt.job, options_.min_retry_delay / kShortRetry, options_.min_retry_delay,
                        ++job.transient_errors);
    case RunOutcome::Kind::kTrouble:
      return RetryLater(attempt.job, options_.min_retry_delay / kShortRetry, options_.max_retry_delay,
                        ++job.transient_errors);
    case RunOutcome::Kind::kFailed:
    case RunOutcome::Kind::kCycle:
      if (result.quarantined_at.has_value() && result.quarantined_at->ok()) {
        return DoneAt(attempt.job, **result.quarantined_at);
      }
      return RetryLater(attempt.job, options_.min_retry_delay, options_.max_retry_delay,
                        result.quarantined_at.has_value() ? ++job.transient_errors : ++job.failures);
  }
}

// There was no mark: no other waiting observer of the cell has to look. But if a hint came since, there may be a mark
// now.
void Dispatch::NoMark(const JobRef& ref) {
  Job& job = ref.job();
  if (job.again) {
    job.again = false;
    return MakeReady(ref);
  }
  for (Job& other : ref.cell->jobs) {
    if (&other == &job || other.state == State::kReady || other.state == State::kWaiting) {
      other.failures = 0;
      other.transient_errors = 0;
      MakeDone(&other, /*left_out=*/false);
    }
  }
}

void Dispatch::DoneAt(const JobRef& ref, Timestamp start_ts) {
  Job& job = ref.job();
  job.done_at = std::max(job.done_at.value_or(Timestamp()), start_ts);
  job.failures = 0;
  job.transient_errors = 0;
  if (job.again) {
    job.again = false;
    MakeReady(ref);
  } else {
    MakeDone(&job, /*left_out=*/false);
  }
}

// --- The end of a cell

Dispatch::FollowUp Dispatch::MarksRemoved(const JobRef& job) {
  MutexLock lock(&mutex_);
  return ContinueEnd(job.cell.get());
}

// The cell was done when its end began. If a hint came while marks were removed, it does not end yet.
Dispatch::FollowUp Dispatch::ContinueEnd(QueuedCell* cell) {
  const bool done = cell->IsDone();
  if (done) {
    if (const std::optional<Timestamp> until = MarksToRemove(*cell)) {
      cell->removed_until = *until;
      return {.remove_until = until};
    }
  }
  --running_;
  cell->ending = false;
  if (!done) return {};
  Rest(*cell);
  cells_.erase(cell->name);
  return {.release_claim = cell->claim == Claim::kHeld};
}

// N4: returns the timestamp up to which every observer of the cell is done, unless those marks are removed already.
std::optional<Timestamp> Dispatch::MarksToRemove(const QueuedCell& cell) const {
  if (doubted_) return std::nullopt;
  const std::optional<Timestamp> until = cell.AllDoneAt();
  return until.has_value() && *until > cell.removed_until ? until : std::nullopt;
}

void Dispatch::Rest(const QueuedCell& cell) {
  if (cell.stale || cell.claim == Claim::kRefused || paused_ || stopping_) return;
  if (std::none_of(cell.jobs.begin(), cell.jobs.end(), [](const Job& job) { return job.left_out; })) return;
  resting_.Add(cell, runtime_->Elapsed());
}

// --- Metrics

std::vector<ObserverMetrics> Dispatch::metrics() const {
  MutexLock lock(&mutex_);
  std::map<const OwnObserver*, Duration> since;
  for (const auto& [name, cell] : cells_) {
    for (const Job& job : cell->jobs) {
      if (job.state == State::kDone) continue;
      const auto [it, is_first] = since.try_emplace(job.observer->own, job.since);
      it->second = std::min(it->second, job.since);
    }
  }
  const Duration now = runtime_->Elapsed();
  std::vector<ObserverMetrics> all;
  for (const auto& own : observers_.own()) {
    const auto oldest = since.find(own.get());
    all.push_back(own->Metrics(oldest == since.end() ? Duration(0) : now - oldest->second));
  }
  return all;
}

Dispatch::Triggered Dispatch::triggered() const {
  MutexLock lock(&mutex_);
  Triggered all;
  for (const auto& own : observers_.own()) all[own->spec().name] = own->triggered();
  return all;
}

}  // namespace percolator
