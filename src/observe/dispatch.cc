#include "src/observe/dispatch.h"

#include <algorithm>

#include "src/base/strings.h"
#include "src/txn/environment.h"

namespace percolator {
namespace {

// Cells that rest, at least.
constexpr size_t kResting = 1000;

// After a conflict, or when something was in the way: this part of the wait after a failure, at first.
constexpr int kShortRetry = 8;

bool IsSame(const ObserverSpec& spec, const ObserverInfo& info) {
  return spec.name == info.name && spec.table == info.table && spec.column == info.column && spec.kind == info.kind;
}

}  // namespace

Dispatch::Dispatch(Runtime* runtime, const WorkerOptions& options, std::vector<ObserverSpec> own, DispatchSteps steps)
    : runtime_(runtime), options_(options), steps_(std::move(steps)), changed_(runtime->NewWaitQueue()) {
  const size_t room = std::max<size_t>(options.max_queued_cells / std::max<size_t>(own.size(), 1), 1);
  for (ObserverSpec& spec : own) {
    auto lane = std::make_unique<Lane>();
    lane->limit = spec.max_concurrency > 0 ? spec.max_concurrency : options.threads;
    lane->most_pending = room;
    lane->spec = std::move(spec);
    lane->counted_run = [counted = lane.get()](ReadWrite& t, const Notification& notification) {
      counted->runs.fetch_add(1, std::memory_order_relaxed);
      return counted->spec.run(t, notification);
    };
    lanes_.push_back(std::move(lane));
  }
  auto foreign = std::make_unique<Lane>();
  foreign->limit = options.threads;
  foreign->most_pending = std::max<size_t>(options.max_queued_cells, 1);
  lanes_.push_back(std::move(foreign));
}

Dispatch::~Dispatch() { Stop(); }

// --- Who observes

void Dispatch::SetObservers(std::vector<ObserverInfo> all) {
  std::sort(all.begin(), all.end(), [](const ObserverInfo& a, const ObserverInfo& b) { return a.name < b.name; });
  MutexLock lock(&mutex_);
  doubted_ = false;
  if (all == known_) return;
  known_ = all;
  std::map<Column, std::vector<Member>> by_column;
  for (const ObserverInfo& info : all) {
    const auto own =
        std::find_if(lanes_.begin(), lanes_.end() - 1, [&](const auto& l) { return IsSame(l->spec, info); });
    by_column[{info.table, info.column}].push_back({info, own->get(), own != lanes_.end() - 1});
  }
  observers_.clear();
  for (auto& [column, members] : by_column) {
    observers_.emplace(column, std::make_shared<const std::vector<Member>>(std::move(members)));
  }
  // What is under way goes on with the observers it knows. It must not remove marks that a new one has not seen (N1).
  for (const auto& [cell, entry] : entries_) entry->stale = true;
  resting_.clear();
}

void Dispatch::DoubtObservers() {
  MutexLock lock(&mutex_);
  doubted_ = true;
}

bool Dispatch::doubts_observers() const {
  MutexLock lock(&mutex_);
  return doubted_;
}

Dispatch::Members Dispatch::FindMembers(std::string_view table, std::string_view column) const {
  const auto it = observers_.find({std::string(table), std::string(column)});
  return it == observers_.end() ? nullptr : it->second;
}

Dispatch::Interest Dispatch::InterestIn(std::string_view table, std::string_view column) const {
  MutexLock lock(&mutex_);
  const Members members = FindMembers(table, column);
  if (members == nullptr) return Interest::kNobody;
  const bool ours = std::any_of(members->begin(), members->end(), [](const Member& m) { return m.own; });
  return ours ? Interest::kOurs : Interest::kOthers;
}

std::set<std::string> Dispatch::ObservedTables() const {
  MutexLock lock(&mutex_);
  std::set<std::string> tables;
  for (const auto& [column, members] : observers_) tables.insert(column.first);
  return tables;
}

// --- What comes in

void Dispatch::Hint(const CellName& cell) {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_) return;
  resting_.erase(cell);
  const auto it = entries_.find(cell);
  if (it == entries_.end()) {
    NewEntry(cell);
    return;
  }
  const std::shared_ptr<Entry>& entry = it->second;
  if (entry->claim == ClaimState::kRefused) entry->claim = ClaimState::kNone;
  for (size_t i = 0; i < entry->units.size(); ++i) {
    Unit& unit = entry->units[i];
    // What runs may have started before the change; what is ready or waits has not.
    if (unit.state == State::kRunning) unit.again = true;
    if (unit.state == State::kDone) MakeReady({entry, i});
  }
}

bool Dispatch::Offer(const CellName& cell, bool claimed) {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_ || entries_.contains(cell) || IsResting(cell)) return false;
  const std::shared_ptr<Entry> entry = NewEntry(cell);
  if (entry == nullptr) return false;
  if (claimed) entry->claim = ClaimState::kHeld;
  return true;
}

// Null: nobody here observes the cell, or there is no room.
std::shared_ptr<Dispatch::Entry> Dispatch::NewEntry(const CellName& cell) {
  const Members members = FindMembers(cell.table, cell.column);
  if (members == nullptr || IsFull()) return nullptr;
  auto entry = std::make_shared<Entry>();
  entry->cell = cell;
  entry->members = members;
  entry->units.resize(members->size());
  const auto rested = resting_.find(cell);
  for (size_t i = 0; i < members->size(); ++i) {
    Unit& unit = entry->units[i];
    unit.member = &(*members)[i];
    if (rested != resting_.end() && rested->second.members == members) unit.done_at = rested->second.done_at[i];
  }
  if (!IsWorthIt(*entry)) return nullptr;
  for (size_t i = 0; i < members->size(); ++i) {
    Unit& unit = entry->units[i];
    if (unit.done_at.has_value()) continue;
    if (HasRoom(*unit.member->lane)) {
      MakeReady({entry, i});
    } else {
      unit.left_out = true;
    }
  }
  if (rested != resting_.end()) resting_.erase(rested);
  entries_.emplace(cell, entry);
  return entry;
}

// One of ours can be taken up; or all of ours are done, and it is for others to end it.
bool Dispatch::IsWorthIt(const Entry& entry) {
  bool any_own = false;
  bool own_open = false;
  bool other_open = false;
  for (const Unit& unit : entry.units) {
    const bool open = !unit.done_at.has_value();
    any_own = any_own || unit.member->own;
    if (unit.member->own && open && HasRoom(*unit.member->lane)) return true;
    own_open = own_open || (unit.member->own && open);
    other_open = other_open || (!unit.member->own && open && HasRoom(*unit.member->lane));
  }
  return any_own && !own_open && other_open;
}

void Dispatch::MakeReady(const Ref& ref) {
  Unit& unit = ref.entry->units[ref.unit];
  Lane* const lane = unit.member->lane;
  if (unit.state == State::kDone) {
    ++lane->pending;
    unit.since = runtime_->Elapsed();
  }
  unit.state = State::kReady;
  unit.left_out = false;
  lane->ready.push_back(ref);
  changed_->WakeOne();
}

void Dispatch::MakeDone(Unit* unit, bool left_out) {
  if (unit->state != State::kDone) --unit->member->lane->pending;
  unit->state = State::kDone;
  unit->again = false;
  unit->left_out = left_out;
}

bool Dispatch::IsResting(const CellName& cell) const {
  const auto it = resting_.find(cell);
  return it != resting_.end() && runtime_->Elapsed() < it->second.until;
}

// N11: there is a place for each observer of ours at least, whatever the others do with theirs.
bool Dispatch::IsFull() const { return entries_.size() >= std::max(options_.max_queued_cells, lanes_.size() - 1); }

bool Dispatch::Has(const CellName& cell) const {
  MutexLock lock(&mutex_);
  return entries_.contains(cell) || IsResting(cell);
}

bool Dispatch::HasRoom() const {
  MutexLock lock(&mutex_);
  if (paused_ || stopping_) return false;
  if (lanes_.size() == 1) return true;  // what is found will not be for us, but may be for nobody
  if (IsFull()) return false;
  return std::any_of(lanes_.begin(), lanes_.end() - 1, [](const auto& lane) { return HasRoom(*lane); });
}

void Dispatch::EndRest() {
  MutexLock lock(&mutex_);
  for (auto& [cell, rested] : resting_) rested.until = Duration(0);
}

size_t Dispatch::running() const {
  MutexLock lock(&mutex_);
  return running_;
}

// --- Threads

void Dispatch::Start() {
  {
    MutexLock lock(&mutex_);
    threads_ = options_.threads;
  }
  for (int i = 0; i < options_.threads; ++i) runtime_->Start([this] { Loop(); });
}

void Dispatch::Stop() {
  std::vector<CellName> claimed;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    claimed = DropWaiting();
    changed_->WakeAll();
    while (threads_ > 0) changed_->Wait(&mutex_);
  }
  for (const CellName& cell : claimed) steps_.release(cell);
}

void Dispatch::Pause() {
  std::vector<CellName> claimed;
  {
    MutexLock lock(&mutex_);
    paused_ = true;
    claimed = DropWaiting();
  }
  for (const CellName& cell : claimed) steps_.release(cell);
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

std::vector<CellName> Dispatch::DropWaiting() {
  std::vector<CellName> claimed;
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = *it->second;
    bool busy = entry.ending;
    for (Unit& unit : entry.units) {
      unit.again = false;
      if (unit.state == State::kRunning) busy = true;
      if (unit.state == State::kReady || unit.state == State::kWaiting) MakeDone(&unit, /*left_out=*/true);
    }
    if (busy) {
      ++it;  // who works on it ends it
      continue;
    }
    if (entry.claim == ClaimState::kHeld) claimed.push_back(entry.cell);
    it = entries_.erase(it);
  }
  for (const auto& lane : lanes_) lane->ready.clear();
  waiting_.clear();
  return claimed;
}

void Dispatch::Loop() {
  mutex_.Lock();
  while (!stopping_) {
    WakeDue();
    Task task;
    if (!Take(&task)) {
      WaitForWork();
      continue;
    }
    mutex_.Unlock();
    const Result result = Execute(task);
    mutex_.Lock();
    Finish(task, result);
  }
  if (--threads_ == 0) changed_->WakeAll();
  mutex_.Unlock();
}

void Dispatch::WakeDue() {
  const Duration now = runtime_->Elapsed();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const auto [due, ref] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    const Unit& unit = ref.entry->units[ref.unit];
    if (unit.state == State::kWaiting && unit.retry_at == due) MakeReady(ref);
  }
}

void Dispatch::WaitForWork() {
  if (waiting_.empty()) {
    changed_->Wait(&mutex_);
  } else {
    changed_->WaitFor(&mutex_, std::max(waiting_.begin()->first - runtime_->Elapsed(), Duration(1)));
  }
}

bool Dispatch::Take(Task* task) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const size_t at = (next_lane_ + i) % lanes_.size();
    Lane& lane = *lanes_[at];
    while (lane.running < lane.limit && !lane.ready.empty()) {
      Ref ref = std::move(lane.ready.front());
      lane.ready.pop_front();
      if (ref.entry->units[ref.unit].state != State::kReady) continue;
      next_lane_ = at + 1;
      *task = Begin(std::move(ref));
      return true;
    }
  }
  return false;
}

Dispatch::Task Dispatch::Begin(Ref ref) {
  Entry& entry = *ref.entry;
  Unit& unit = entry.units[ref.unit];
  unit.state = State::kRunning;
  unit.again = false;
  ++unit.member->lane->running;
  ++running_;
  Task task;
  task.member = unit.member;
  task.request = {.observer = &unit.member->info,
                  .run = unit.member->own ? &unit.member->lane->counted_run : nullptr,
                  .cell = entry.cell,
                  .others_done_at = OthersDoneAt(entry, ref.unit),
                  .max_chain = options_.max_chain};
  task.failures = unit.failures;
  task.claim_refused = entry.claim == ClaimState::kRefused;
  if (options_.claims && entry.claim == ClaimState::kNone) {
    task.ask_claim = true;
    entry.claim = ClaimState::kAsking;
  }
  task.ref = std::move(ref);
  return task;
}

std::optional<Timestamp> Dispatch::OthersDoneAt(const Entry& entry, size_t unit) const {
  if (entry.stale || doubted_) return std::nullopt;
  Timestamp smallest = Timestamp::Infinity();
  for (size_t i = 0; i < entry.units.size(); ++i) {
    if (i == unit) continue;
    if (!entry.units[i].done_at.has_value()) return std::nullopt;
    smallest = std::min(smallest, *entry.units[i].done_at);
  }
  return smallest;
}

Dispatch::Result Dispatch::Execute(const Task& task) const {
  Result result;
  if (task.claim_refused || (task.ask_claim && !steps_.claim(task.request.cell))) {
    result.claim_refused = true;
    return result;
  }
  result.outcome = steps_.run(task.request);
  const RunOutcome& outcome = result.outcome;
  if (outcome.kind == RunOutcome::Kind::kCommitted) TellCommit(task, outcome);
  const bool is_cycle = outcome.kind == RunOutcome::Kind::kCycle;
  const int attempts = task.failures + (is_cycle ? 0 : 1);
  if (is_cycle || (outcome.kind == RunOutcome::Kind::kFailed && attempts >= task.member->lane->spec.max_attempts)) {
    const absl::Status error =
        is_cycle
            ? absl::FailedPreconditionError(StrCat("not run: the notification is at the end of a chain of more than ",
                                                   options_.max_chain, ", which is taken for a cycle"))
            : outcome.status;
    result.quarantine_tried = true;
    result.quarantined_at = steps_.quarantine(task.member->info, task.request.cell, outcome.start_ts, attempts, error);
  }
  return result;
}

void Dispatch::TellCommit(const Task& task, const RunOutcome& outcome) const {
  if (options_.on_commit == nullptr) return;
  try {
    options_.on_commit(task.member->info.name, {task.request.cell, outcome.change_ts}, outcome.commit_ts);
  } catch (...) {
    // The run has committed, whatever its listener thinks of it: there is nobody to tell.
  }
}

// --- What came of a run

void Dispatch::Finish(const Task& task, const Result& result) {
  Entry& entry = *task.ref.entry;
  Unit& unit = entry.units[task.ref.unit];
  --unit.member->lane->running;
  --running_;
  if (result.claim_refused) {
    entry.claim = ClaimState::kRefused;
    MakeDone(&unit, /*left_out=*/true);
  } else {
    if (task.ask_claim) entry.claim = ClaimState::kHeld;
    Count(task, result);
    ApplyOutcome(task, result);
  }
  // A unit that has to run again would not be taken up: it is left to others.
  if ((paused_ || stopping_) && unit.state != State::kDone) MakeDone(&unit, /*left_out=*/true);
  const bool for_long = result.outcome.kind != RunOutcome::Kind::kConflict;
  if (for_long && IsWaiting(entry)) {
    ReleaseClaim(&entry);
  } else {
    EndIfDone(task.ref.entry);
  }
}

bool Dispatch::IsWaiting(const Entry& entry) {
  bool waits = false;
  for (const Unit& unit : entry.units) {
    if (unit.state == State::kReady || unit.state == State::kRunning) return false;
    waits = waits || unit.state == State::kWaiting;
  }
  return waits;
}

// N11: in a row that waits for long others may have something to do. The next run asks for the claim again.
void Dispatch::ReleaseClaim(Entry* entry) {
  if (entry->claim != ClaimState::kHeld) return;
  entry->claim = ClaimState::kNone;
  const CellName cell = entry->cell;
  mutex_.Unlock();
  steps_.release(cell);
  mutex_.Lock();
}

void Dispatch::Count(const Task& task, const Result& result) {
  Lane& lane = *task.member->lane;
  const RunOutcome& outcome = result.outcome;
  switch (outcome.kind) {
    case RunOutcome::Kind::kCommitted:
      ++lane.commits;
      lane.triggered.insert(outcome.triggered.begin(), outcome.triggered.end());
      if (outcome.change_ts != Timestamp() && outcome.commit_ts > outcome.change_ts) {
        lane.latency.Record(Duration(outcome.commit_ts.value() - outcome.change_ts.value()));
      }
      break;
    case RunOutcome::Kind::kConflict:
      ++lane.conflicts;
      break;
    case RunOutcome::Kind::kFailed:
      ++lane.failures;
      break;
    case RunOutcome::Kind::kCycle:
      ++lane.cycles;
      break;
    case RunOutcome::Kind::kTrouble:
      ++lane.transient_errors;
      break;
    case RunOutcome::Kind::kNoMark:
    case RunOutcome::Kind::kClean:
    case RunOutcome::Kind::kDirty:
      break;
  }
  if (result.quarantine_tried && result.quarantined_at.ok()) ++lane.quarantined;
}

void Dispatch::ApplyOutcome(const Task& task, const Result& result) {
  const RunOutcome& outcome = result.outcome;
  Entry& entry = *task.ref.entry;
  Unit& unit = entry.units[task.ref.unit];
  switch (outcome.kind) {
    case RunOutcome::Kind::kNoMark:
      return NoMark(task.ref);
    case RunOutcome::Kind::kClean:
    case RunOutcome::Kind::kCommitted:
      if (outcome.marks_removed && task.request.others_done_at.has_value()) {
        const Timestamp until = std::min(outcome.start_ts, *task.request.others_done_at);
        entry.removed_until = std::max(entry.removed_until, until);
      }
      return DoneAt(task.ref, outcome.start_ts);
    case RunOutcome::Kind::kDirty:
      return MakeDone(&unit, /*left_out=*/true);
    case RunOutcome::Kind::kConflict:
      return RetryLater(task.ref, options_.min_retry_delay / kShortRetry, options_.min_retry_delay,
                        ++unit.transient_errors);
    case RunOutcome::Kind::kTrouble:
      return RetryLater(task.ref, options_.min_retry_delay / kShortRetry, options_.max_retry_delay,
                        ++unit.transient_errors);
    case RunOutcome::Kind::kFailed:
    case RunOutcome::Kind::kCycle:
      if (result.quarantined_at.ok()) return DoneAt(task.ref, *result.quarantined_at);
      if (result.quarantine_tried) {
        return RetryLater(task.ref, options_.min_retry_delay, options_.max_retry_delay, ++unit.transient_errors);
      }
      return RetryLater(task.ref, options_.min_retry_delay, options_.max_retry_delay, ++unit.failures);
  }
}

// There was no mark: whoever else waits here need not look. Unless a hint came since: then there may be one now.
void Dispatch::NoMark(const Ref& ref) {
  Entry& entry = *ref.entry;
  Unit& unit = entry.units[ref.unit];
  if (unit.again) {
    unit.again = false;
    return MakeReady(ref);
  }
  for (Unit& other : entry.units) {
    if (&other == &unit || other.state == State::kReady || other.state == State::kWaiting) {
      other.failures = 0;
      other.transient_errors = 0;
      MakeDone(&other, /*left_out=*/false);
    }
  }
}

void Dispatch::DoneAt(const Ref& ref, Timestamp start_ts) {
  Unit& unit = ref.entry->units[ref.unit];
  unit.done_at = std::max(unit.done_at.value_or(Timestamp()), start_ts);
  unit.failures = 0;
  unit.transient_errors = 0;
  if (unit.again) {
    unit.again = false;
    MakeReady(ref);
  } else {
    MakeDone(&unit, /*left_out=*/false);
  }
}

// Half of the time at least, and the rest by chance, so that those who lost against each other do not meet again.
void Dispatch::RetryLater(const Ref& ref, Duration first, Duration last, int times) {
  last = std::min(last, kForever);
  Duration bound = std::clamp(first, Duration(2), kForever);
  for (int i = 1; i < times && bound < last; ++i) bound *= 2;
  const auto half = static_cast<uint64_t>(std::max(std::min(bound, last), Duration(2)).count() / 2);
  Unit& unit = ref.entry->units[ref.unit];
  unit.state = State::kWaiting;
  unit.again = false;  // the next run will see it
  unit.retry_at = runtime_->Elapsed() + Duration(half + runtime_->Random() % (half + 1));
  waiting_.emplace(unit.retry_at, ref);
  changed_->WakeOne();
}

void Dispatch::EndIfDone(const std::shared_ptr<Entry>& entry) {
  const auto is_done = [&] {
    return std::all_of(entry->units.begin(), entry->units.end(),
                       [](const Unit& unit) { return unit.state == State::kDone; });
  };
  if (entry->ending || !is_done()) return;
  entry->ending = true;
  ++running_;
  while (is_done()) {
    const std::optional<Timestamp> until = MarksToRemove(*entry);
    if (!until.has_value()) break;
    entry->removed_until = *until;
    mutex_.Unlock();
    // Marks that stay are found by a scanner.
    steps_.remove_marks(entry->cell, *until).IgnoreError();
    mutex_.Lock();
  }
  --running_;
  entry->ending = false;
  if (!is_done()) return;  // a hint came meanwhile
  Rest(*entry);
  entries_.erase(entry->cell);
  if (entry->claim != ClaimState::kHeld) return;
  mutex_.Unlock();
  steps_.release(entry->cell);
  mutex_.Lock();
}

// N4: up to where every observer of the cell is done, if that has not happened yet.
std::optional<Timestamp> Dispatch::MarksToRemove(const Entry& entry) const {
  if (entry.stale || doubted_) return std::nullopt;
  Timestamp until = Timestamp::Infinity();
  for (const Unit& unit : entry.units) {
    if (!unit.done_at.has_value()) return std::nullopt;
    until = std::min(until, *unit.done_at);
  }
  if (until <= entry.removed_until) return std::nullopt;
  return until;
}

void Dispatch::Rest(const Entry& entry) {
  if (entry.stale || entry.claim == ClaimState::kRefused || paused_ || stopping_) return;
  if (std::none_of(entry.units.begin(), entry.units.end(), [](const Unit& unit) { return unit.left_out; })) return;
  const Duration now = runtime_->Elapsed();
  const size_t most = std::max(options_.max_queued_cells, kResting);
  if (resting_.size() >= most) {
    std::erase_if(resting_, [now](const auto& rests) { return rests.second.until <= now; });
  }
  if (resting_.size() >= most) return;
  Rested& rested = resting_[entry.cell];
  rested = {now + std::min(options_.scan_period, kForever), entry.members, {}};
  for (const Unit& unit : entry.units) rested.done_at.push_back(unit.done_at);
}

// --- What is told

std::vector<ObserverMetrics> Dispatch::metrics() const {
  MutexLock lock(&mutex_);
  std::map<const Lane*, Duration> since;
  for (const auto& [cell, entry] : entries_) {
    for (const Unit& unit : entry->units) {
      if (unit.state == State::kDone) continue;
      const auto [it, is_first] = since.try_emplace(unit.member->lane, unit.since);
      it->second = std::min(it->second, unit.since);
    }
  }
  const Duration now = runtime_->Elapsed();
  std::vector<ObserverMetrics> all;
  for (size_t i = 0; i + 1 < lanes_.size(); ++i) {
    const Lane& lane = *lanes_[i];
    const std::vector<Histogram::Bucket> latency = lane.latency.Buckets();
    const auto oldest = since.find(&lane);
    ObserverMetrics metrics{.name = lane.spec.name,
                            .runs = lane.runs.load(std::memory_order_relaxed),
                            .commits = lane.commits,
                            .conflicts = lane.conflicts,
                            .failures = lane.failures,
                            .transient_errors = lane.transient_errors,
                            .cycles = lane.cycles,
                            .quarantined = lane.quarantined,
                            .pending = static_cast<int64_t>(lane.pending),
                            .oldest = oldest == since.end() ? Duration(0) : now - oldest->second,
                            .latency_p50 = Histogram::Percentile(latency, 0.5),
                            .latency_p99 = Histogram::Percentile(latency, 0.99),
                            .latency = {}};
    for (const Histogram::Bucket& bucket : latency) metrics.latency.push_back({bucket.up_to, bucket.count});
    all.push_back(std::move(metrics));
  }
  return all;
}

Dispatch::Triggered Dispatch::triggered() const {
  MutexLock lock(&mutex_);
  Triggered all;
  for (size_t i = 0; i + 1 < lanes_.size(); ++i) all[lanes_[i]->spec.name] = lanes_[i]->triggered;
  return all;
}

}  // namespace percolator
