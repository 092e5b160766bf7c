// SPDX-License-Identifier: Apache-2.0

// The public class Loader, and LoaderCore.

#include "percolator/loader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <utility>

#include "percolator/cluster.h"
#include "percolator/status.h"
#include "src/base/fork.h"
#include "src/base/strings.h"
#include "src/observe/worker_impl.h"
#include "src/recipes/loader_core.h"
#include "src/txn/transact.h"

namespace percolator {
namespace {

// Between two counts of the backlog: normally, and when the estimate has reached the bound. But at least this many
// times as long as the last count took, which counts all that waits.
constexpr Duration kCountPeriod = std::chrono::milliseconds(50);
constexpr Duration kSoon = std::chrono::milliseconds(5);
constexpr int kCountRest = 9;
constexpr Duration kReportPeriod = std::chrono::seconds(1);
// The rate is that of this many reports.
constexpr size_t kSamples = 5;
// The number of notifications read to find the oldest, if their number has no bound.
constexpr size_t kBacklogSample = 10'000;
constexpr double kLongest = 1e9;  // seconds

absl::Status CheckOptions(const LoaderOptions& options) {
  if (options.threads < 1) return absl::InvalidArgumentError("LoaderOptions::threads must be at least 1");
  if (options.max_queued < 1) return absl::InvalidArgumentError("LoaderOptions::max_queued must be at least 1");
  if (options.max_backlog_age < Duration(0))
    return absl::InvalidArgumentError("LoaderOptions::max_backlog_age must not be negative");
  return absl::OkStatus();
}

// Returns 1234567 as 1,234,567.
std::string WithCommas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string TimeText(Duration duration) {
  const auto seconds = static_cast<int64_t>(std::ceil(Seconds(duration)));
  if (seconds < 120) return StrCat(seconds, " s");
  return seconds < 7200 ? StrCat(seconds / 60, " min") : StrCat(seconds / 3600, " h");
}

}  // namespace

std::string ToString(const LoadProgress& progress) {
  std::string text = WithCommas(progress.done);
  if (progress.expected > 0) {
    const auto percent =
        static_cast<int64_t>(100.0 * static_cast<double>(progress.done) / static_cast<double>(progress.expected));
    text.append(StrCat(" of ", WithCommas(progress.expected), " (", percent, " %)"));
  }
  text.append(StrCat(", ", WithCommas(static_cast<uint64_t>(std::llround(progress.per_second))), "/s"));
  if (progress.remaining > Duration(0)) text.append(StrCat(", ", TimeText(progress.remaining), " left"));
  text.append(StrCat(", backlog ", WithCommas(progress.backlog)));
  if (progress.failed > 0) text.append(StrCat(", ", WithCommas(progress.failed), " failed"));
  if (progress.throttled) text.append(", waiting for observers");
  return text;
}

LoaderCore::LoaderCore(LoaderCallbacks callbacks, LoaderOptions options, absl::Status error)
    : callbacks_(std::move(callbacks)),
      options_(std::move(options)),
      begun_(callbacks_.runtime->Elapsed()),
      room_(callbacks_.runtime->NewWaitQueue()),
      work_(callbacks_.runtime->NewWaitQueue()),
      changed_(callbacks_.runtime->NewWaitQueue()),
      first_error_(error.ok() ? CheckOptions(options_) : std::move(error)),
      samples_({{begun_, 0}}),
      usable_(first_error_.ok()),
      bounded_(options_.max_backlog > 0 || options_.max_backlog_age > Duration(0)) {
  if (!usable_) return;
  for (int i = 0; i < options_.threads; ++i) StartTask(&LoaderCore::Work);
  if (options_.max_backlog > 0 || options_.max_backlog_age > Duration(0)) StartTask(&LoaderCore::Watch);
  StartTask(&LoaderCore::Report);
}

LoaderCore::~LoaderCore() { Finish().IgnoreError(); }

// Every task is started here, so that the destructor can wait for it.
void LoaderCore::StartTask(void (LoaderCore::*task)()) {
  {
    MutexLock lock(&mutex_);
    ++tasks_;
  }
  callbacks_.runtime->Start([this, task] {
    (this->*task)();
    MutexLock lock(&mutex_);
    --tasks_;
    changed_->WakeAll();
  });
}

void LoaderCore::Add(Function load) {
  MutexLock lock(&mutex_);
  while (usable_ && !finished_ && waiting_.size() >= options_.max_queued) room_->Wait(&mutex_);
  if (closed_) return NoteEnd(callbacks_.closed(), 0);
  if (!usable_ || finished_) {
    NoteEnd(absl::FailedPreconditionError("cannot add to the loader: Finish was called"), 0);
    return;
  }
  waiting_.push_back(std::move(load));
  work_->WakeOne();
  if (bounded_ && !counted_) changed_->WakeAll();
}

absl::Status LoaderCore::Finish() {
  bool first = false;
  LoadProgress end;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    while (!is_idle()) changed_->Wait(&mutex_);
    EndTasks();
    first = !std::exchange(reported_, true);
    end = ProgressNow();
    status = first_error_;
  }
  if (first && usable_) status.Update(CallOnProgress(end));
  return status;
}

void LoaderCore::StopForClose() {
  std::deque<Function> dropped;  // destroyed without the mutex: one may hold the last handle of this loader
  MutexLock lock(&mutex_);
  if (!finished_) closed_ = true;
  dropped.swap(waiting_);
  for (size_t left = dropped.size(); left > 0; --left) NoteEnd(callbacks_.closed(), 0);
  EndTasks();
}

void LoaderCore::EndTasks() {
  finished_ = true;
  stopping_ = true;
  room_->WakeAll();
  work_->WakeAll();
  changed_->WakeAll();
  while (tasks_ > 0) changed_->Wait(&mutex_);
}

LoadProgress LoaderCore::progress() const {
  MutexLock lock(&mutex_);
  return ProgressNow();
}

// --- Loading

void LoaderCore::Work() {
  mutex_.Lock();
  while (!stopping_ || !waiting_.empty()) {
    if (waiting_.empty() || !MayBegin()) {
      work_->Wait(&mutex_);
      continue;
    }
    Function load = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    room_->WakeOne();
    mutex_.Unlock();
    size_t marks = 0;
    const absl::Status status = Run(std::move(load), &marks);  // the function is destroyed before it counts as done
    mutex_.Lock();
    --running_;
    NoteEnd(status, marks);
  }
  mutex_.Unlock();
}

// An exception of the function is an error like one that it returns.
absl::Status LoaderCore::Run(Function load, size_t* marks) {
  if (load == nullptr) return absl::InvalidArgumentError("the load function is empty");
  try {
    return callbacks_.transact(std::move(load), options_.transaction, marks);
  } catch (const std::exception& e) {
    return absl::InternalError(StrCat("the load function threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("the load function threw an exception that is not a std::exception");
  }
}

// The marks are added only now: a count that began before may or may not have included them, so they may count twice,
// but never not at all.
void LoaderCore::NoteEnd(const absl::Status& status, size_t marks) {
  ++done_;
  marks_ += marks;
  if (!status.ok()) {
    ++failed_;
    KeepError(status);
  }
  if (is_idle() || EstimateIsFull()) changed_->WakeAll();
}

void LoaderCore::KeepError(const absl::Status& status) {
  if (first_error_.ok()) first_error_ = status;
}

// --- Back-pressure

bool LoaderCore::EstimateIsFull() const {
  return options_.max_backlog > 0 && backlog_.cells + (marks_ - marks_at_count_) > options_.max_backlog;
}

bool LoaderCore::MayBegin() const {
  if (!bounded_) return true;
  if (!counted_ || EstimateIsFull()) return false;
  return options_.max_backlog_age == Duration(0) || backlog_.oldest <= options_.max_backlog_age ||
         backlog_.cells <= options_.max_stuck_cells;
}

void LoaderCore::Watch() {
  // One more than the bound shows that it is exceeded.
  const bool counts = options_.max_backlog > 0 && options_.max_backlog < SIZE_MAX;
  const size_t limit = counts ? options_.max_backlog + 1 : kBacklogSample;
  Duration last{};
  Duration took{};
  mutex_.Lock();
  while (!stopping_ && bounded_) {
    if (is_idle()) {
      counted_ = false;  // the count gets out of date
      changed_->Wait(&mutex_);
      continue;
    }
    const bool soon = EstimateIsFull() && marks_ != marks_at_count_;
    const Duration wait =
        last + std::max(soon ? kSoon : kCountPeriod, kCountRest * took) - callbacks_.runtime->Elapsed();
    if (counted_ && wait > Duration(0)) {
      changed_->WaitFor(&mutex_, wait);
      continue;
    }
    const uint64_t marks_before = marks_;
    const Duration began = callbacks_.runtime->Elapsed();
    mutex_.Unlock();
    const absl::StatusOr<Backlog> backlog = callbacks_.backlog(limit);
    mutex_.Lock();
    last = callbacks_.runtime->Elapsed();
    took = last - began;
    NoteBacklog(backlog, marks_before);
  }
  mutex_.Unlock();
}

void LoaderCore::NoteBacklog(const absl::StatusOr<Backlog>& backlog, uint64_t marks_before) {
  if (backlog.ok()) {
    backlog_ = *backlog;
    marks_at_count_ = marks_before;
    counted_ = true;
  } else if (!IsTransient(backlog.status())) {
    // The backlog will never be known: waiting for it would not end.
    KeepError(backlog.status());
    bounded_ = false;
  } else if (!counted_) {
    changed_->WaitFor(&mutex_, kCountPeriod);
  }
  if (MayBegin()) work_->WakeAll();
}

// --- Progress

void LoaderCore::Report() {
  mutex_.Lock();
  Duration next = begun_ + kReportPeriod;
  while (!stopping_) {
    const Duration now = callbacks_.runtime->Elapsed();
    if (now < next) {
      changed_->WaitFor(&mutex_, next - now);
      continue;
    }
    next = now + kReportPeriod;
    const LoadProgress progress = ProgressNow();
    samples_.push_back({now, done_});
    if (samples_.size() > kSamples) samples_.pop_front();
    mutex_.Unlock();
    const absl::Status called = CallOnProgress(progress);
    mutex_.Lock();
    KeepError(called);
  }
  mutex_.Unlock();
}

absl::Status LoaderCore::CallOnProgress(const LoadProgress& progress) const {
  if (options_.on_progress == nullptr) return absl::OkStatus();
  try {
    options_.on_progress(progress);
    return absl::OkStatus();
  } catch (const std::exception& e) {
    return absl::InternalError(StrCat("on_progress threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("on_progress threw an exception that is not a std::exception");
  }
}

LoadProgress LoaderCore::ProgressNow() const {
  const Duration now = callbacks_.runtime->Elapsed();
  LoadProgress progress{.done = done_,
                        .failed = failed_,
                        .expected = options_.expected,
                        .elapsed = now - begun_,
                        .backlog = backlog_.cells,
                        .throttled = !waiting_.empty() && bounded_ && counted_ && !MayBegin()};
  const Sample& from = samples_.front();
  if (now > from.at) progress.per_second = static_cast<double>(done_ - from.done) / Seconds(now - from.at);
  if (options_.expected > done_ && progress.per_second > 0) {
    const double seconds = static_cast<double>(options_.expected - done_) / progress.per_second;
    progress.remaining = Duration(static_cast<int64_t>(std::min(seconds, kLongest) * 1e6));
  }
  return progress;
}

Loader::Loader(const Cluster& cluster, LoaderOptions options) : engine_(cluster.engine()) {
  const std::shared_ptr<internal::Engine>& engine = engine_;
  if (options.on_progress != nullptr) {
    options.on_progress = [engine = engine.get(), tell = std::move(options.on_progress)](const LoadProgress& progress) {
      const Engine::UserTask task(engine);
      tell(progress);
    };
  }
  LoaderCallbacks callbacks;
  callbacks.runtime = engine->env.runtime;
  callbacks.transact = [engine](Function load, const TransactionOptions& how, size_t* marks) {
    const Engine::UserTask task(engine.get());
    const Function mine = std::move(load);  // destroyed within the task: it may hold the last handle of this loader
    return RunTransaction(engine, mine, how, nullptr, marks);
  };
  callbacks.backlog = [engine = engine.get()](size_t limit) {
    return engine->InCall([&] { return CountBacklog(engine, limit); });
  };
  callbacks.closed = [engine = engine.get()] { return engine->Closed(); };
  const bool closed = engine->closing() || engine->forked();
  core_ = std::make_shared<LoaderCore>(std::move(callbacks), std::move(options),
                                       closed ? engine->Closed() : absl::OkStatus());
  if (!engine->AddService(core_)) core_->StopForClose();
}

Loader::~Loader() {
  if (engine_->forked()) {
    KeepUntilExit(std::move(core_));
  } else if (engine_->InUserTask()) {  // Finish may wait for the end of that task
    engine_->env.runtime->Start([core = std::move(core_)] { core->Finish().IgnoreError(); });
  } else {
    core_->Finish().IgnoreError();
  }
}
void Loader::Push(Function load) {
  if (!engine_->forked()) core_->Add(std::move(load));
}
absl::Status Loader::Finish() {
  if (engine_->forked()) return engine_->Closed();
  if (engine_->InUserTask()) {
    return absl::FailedPreconditionError(
        "cannot finish a loader from a load function, an observer or another callback of its cluster: Finish waits for "
        "those");
  }
  const std::shared_ptr<LoaderCore> core = core_;  // on_progress may destroy this handle
  return core->Finish();
}
LoadProgress Loader::progress() const { return core_->progress(); }

}  // namespace percolator
