// SPDX-License-Identifier: Apache-2.0

#include "sim/process.h"

#include <algorithm>
#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {
namespace {

// The max time that the clock of a process shows when virtual time begins.
constexpr Duration kClockStartMax = std::chrono::hours(1);

// The jump of the clock of a process that dies, past every deadline, and the further jump at every wait of a ghost, so
// that deadlines set after its death pass too.
constexpr Duration kGhostJump = std::chrono::hours(24);
constexpr Duration kGhostTick = std::chrono::seconds(1);
// The length of a wait of a ghost. Not zero, because a ghost that loops must not stop the time of others.
constexpr Duration kGhostStep = std::chrono::milliseconds(1);

}  // namespace

// A condition variable among the fibers of one process. WakeOne wakes a random waiter, because a real one promises no
// order.
class Process::Queue final : public WaitQueue {
 public:
  explicit Queue(Process* process) : process_(process) {}

  void Wait(Mutex* mutex) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool spurious = chance().Happens(process_->id_, Site::kSpuriousWake, kernel().faults.rates.spurious_wake);
    if (spurious) {
      const Duration most = kernel().faults.latency_max;
      ParkAtMost(mutex, chance().Between(process_->id_, Site::kSpuriousDelay, Duration(0), most));
    } else {
      Begin(mutex);
      kernel().scheduler.Park("WaitQueue::Wait");
      End(mutex);
    }
  }

  void WaitFor(Mutex* mutex, Duration at_most) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (process_->crashed_) {
      process_->ghost_time_ += std::max(at_most, Duration(0)) + kGhostTick;
      at_most = kGhostStep;
    }
    ParkAtMost(mutex, at_most);
  }

  void WakeOne() override {
    while (!waiting_.empty()) {
      const auto chosen =
          waiting_.begin() + static_cast<ptrdiff_t>(chance().Below(process_->id_, Site::kWakeOne, waiting_.size()));
      const Scheduler::Parking parking = *chosen;
      waiting_.erase(chosen);
      if (kernel().scheduler.Wake(parking)) return;
    }
  }

  void WakeAll() override {
    for (const Scheduler::Parking& parking : std::exchange(waiting_, {})) kernel().scheduler.Wake(parking);
  }

 private:
  Kernel& kernel() const { return *process_->kernel_; }
  Chance& chance() const { return kernel().chance; }

  // Only one fiber runs at a time, and it yields only in Park, so no other fiber runs in between.
  void Begin(Mutex* mutex) ABSL_UNLOCK_FUNCTION(mutex) {
    waiting_.push_back(kernel().scheduler.Here());
    mutex->Unlock();
  }
  void End(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) { mutex->Lock(); }

  // Ends early when the process dies: by its clock the time is over then.
  void ParkAtMost(Mutex* mutex, Duration at_most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const Scheduler::Parking here = kernel().scheduler.Here();
    Begin(mutex);
    kernel().scheduler.ParkUntil(kernel().now() + at_most, "WaitQueue::WaitFor", Scheduler::Interruptible::kYes);
    std::erase(waiting_, here);
    End(mutex);
  }

  Process* const process_;
  std::vector<Scheduler::Parking> waiting_;  // some may have their turn already, by their timers
};

Process::Process(Kernel* kernel, ActorId id, std::string name)
    : kernel_(kernel),
      id_(id),
      name_(std::move(name)),
      clock_start_(kernel->chance.Between(id, Site::kClockStart, Duration(0), kClockStartMax)),
      group_(id) {}

void Process::Note(std::string_view what) {
  kernel_->trace.Mark(what);
  if (kernel_->trace.on()) kernel_->trace.Line(kernel_->now(), name_, StrCat("! ", what));
}

void Process::Crash() {
  if (crashed_) return;
  Note("dies");
  Resume();
  crashed_ = true;
  ghost_time_ = kGhostJump;
  kernel_->scheduler.Interrupt(&group_);
  for (ProcessListener* listener : listeners_) listener->OnCrash(this);
}

void Process::Pause(Duration duration) {
  if (crashed_ || paused_) return;
  Note("is paused");
  paused_ = true;
  const uint64_t number = ++pauses_;
  kernel_->scheduler.Hold(&group_);
  kernel_->scheduler.At(kernel_->now() + duration, id_, "resume", [this, number] {
    if (pauses_ == number) Resume();
  });
  for (ProcessListener* listener : listeners_) listener->OnPause(this);
}

void Process::Resume() {
  if (!paused_) return;
  Note("goes on");
  paused_ = false;
  kernel_->scheduler.Release(&group_);
}

void Process::Start(std::string_view task_name, std::function<void()> task) {
  kernel_->scheduler.Start(&group_, StrCat(name_, "/", task_name, ++tasks_), std::move(task));
}

double Process::FocusFactor(CallKind kind, Steps steps) const {
  return kernel_->faults.focus == kind || (kernel_->faults.focus_steps & steps) != 0 ? kernel_->faults.focus_factor : 1;
}

// The group is held, so its turn comes when the pause ends.
void Process::StopIfPaused() {
  if (paused_) kernel_->scheduler.ParkUntil(kernel_->now(), "a pause");
}

void Process::GhostStep(Duration duration) {
  ghost_time_ += duration + kGhostTick;
  kernel_->scheduler.ParkUntil(kernel_->now() + kGhostStep, "the end of a ghost");
}

void Process::PauseFor(Steps steps, Mishap shortest) {
  const Faults& faults = kernel_->faults;
  Duration length = kernel_->chance.Between(id_, Site::kPauseLength, Duration(0), faults.pause_max);
  if (faults.long_pauses && kernel_->chance.Below(id_, Site::kPauseLength, 4) == 0) {
    length = faults.retention + kernel_->chance.Between(id_, Site::kPauseLength, Duration(1), faults.lease);
  }
  const size_t longer = length > faults.retention ? 2 : length > faults.lease ? 1 : 0;
  if (!paused_) kernel_->covered.Add(steps, static_cast<Mishap>(static_cast<size_t>(shortest) + longer));
  Pause(length);
}

bool Process::EnterCall(CallKind kind, Steps steps) {
  if (!crashed_) {
    const Faults& faults = kernel_->faults;
    const Faults::Rates& rates = faults.rates;
    const double factor = FocusFactor(kind, steps);
    Chance& chance = kernel_->chance;
    const bool focused = (faults.focus_steps & steps) != 0;
    if (chance.Happens(id_, Site::kSessionLost, focused ? rates.session_lost * factor : rates.session_lost)) {
      kernel_->covered.Add(steps, Mishap::kSessionLost);
      for (ProcessListener* listener : listeners_) listener->OnSessionLost(this);
    }
    if (chance.Happens(id_, Site::kPause, rates.pause * factor)) PauseFor(steps, Mishap::kPause);
    StopIfPaused();
    if (chance.Happens(id_, Site::kCrash, rates.crash * factor)) {
      kernel_->covered.Add(steps, Mishap::kCrash);
      Crash();
    }
  }
  if (crashed_) GhostStep(Duration(0));
  return !crashed_;
}

void Process::AfterSend(CallKind kind, Steps steps) {
  const Faults::Rates& rates = kernel_->faults.rates;
  const double factor = FocusFactor(kind, steps);
  Chance& chance = kernel_->chance;
  if (chance.Happens(id_, Site::kPauseAfterSend, rates.pause_after_send * factor)) PauseFor(steps, Mishap::kWaitPause);
  StopIfPaused();
  if (chance.Happens(id_, Site::kCrashAfterSend, rates.crash_after_send * factor)) {
    kernel_->covered.Add(steps, Mishap::kWaitCrash);
    Crash();
  }
}

void Process::AwaitAnswer(std::string_view where, Duration deadline) {
  kernel_->scheduler.ParkUntil(deadline, where, Scheduler::Interruptible::kYes);
}

Duration Process::Elapsed() { return clock_start_ + kernel_->now() + ghost_time_; }

void Process::Sleep(Duration duration) {
  StopIfPaused();
  if (crashed_) {
    GhostStep(std::max(duration, Duration(0)));
    return;
  }
  kernel_->scheduler.ParkUntil(kernel_->now() + duration, "Runtime::Sleep", Scheduler::Interruptible::kYes);
}

std::unique_ptr<WaitQueue> Process::NewWaitQueue() { return std::make_unique<Queue>(this); }

}  // namespace percolator::sim
