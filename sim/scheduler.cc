// SPDX-License-Identifier: Apache-2.0

#include "sim/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {

// A fiber and its state. Lives as long as the scheduler, and serves one fiber after the other, so that a Parking may
// refer to it when its fiber is long gone: numbers of waits are never reused.
struct Scheduler::Task {
  enum class State : uint8_t { kFree, kReady, kRunning, kParked };

  std::unique_ptr<Fiber> fiber;
  std::string name;
  Group* group = nullptr;
  ActorId actor = kWorldActor;
  State state = State::kFree;
  uint64_t wait = 0;  // the number of the wait it is in, or the next to come
  std::string_view where;
  Interruptible interruptible = Interruptible::kNo;
};

struct Scheduler::Slot {
  uint64_t number = 0;  // of the event in it; 0: none, or a cancelled one
  std::string_view label;
  Action action;
};

struct Scheduler::Entry {
  Duration time;
  uint64_t tie_break;
  uint32_t slot;

  // The heap has the greatest element in front, so the last event is the least.
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.tie_break > b.tie_break;
  }
};

Scheduler::Scheduler(Chance* chance, Trace* trace) : chance_(chance), trace_(trace) {}

Scheduler::~Scheduler() { Clear(); }

void Scheduler::Clear() {
  ending_ = true;
  // Dropped actions may try to schedule more, without effect.
  slots_.clear();
  queue_.clear();
  tasks_.clear();
  events_left_ = 0;
}

Scheduler::EventId Scheduler::At(Duration when, ActorId actor, std::string_view label, Action action) {
  if (ending_) return {};
  uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const uint64_t number = next_event_++;
  slots_[slot].number = number;
  slots_[slot].label = label;
  slots_[slot].action = std::move(action);
  queue_.push_back({std::max(when, now_), chance_->Draw(actor, Site::kTieBreak), slot});
  std::push_heap(queue_.begin(), queue_.end());
  ++events_left_;
  return {slot, number};
}

void Scheduler::Cancel(const EventId& event) {
  if (event.slot >= slots_.size() || slots_[event.slot].number != event.number) return;
  slots_[event.slot].number = 0;
  slots_[event.slot].action = nullptr;
  --events_left_;
}

void Scheduler::RunNext() {
  std::pop_heap(queue_.begin(), queue_.end());
  const Entry entry = queue_.back();
  queue_.pop_back();
  free_slots_.push_back(entry.slot);
  if (slots_[entry.slot].number == 0) return;  // cancelled
  now_ = entry.time;
  trace_->Mark(Mix(static_cast<uint64_t>(entry.time.count()), entry.tie_break));
  trace_->Mark(slots_[entry.slot].label);
  // The slot may be reused while the action runs.
  Action action = std::move(slots_[entry.slot].action);
  slots_[entry.slot].number = 0;
  slots_[entry.slot].action = nullptr;
  --events_left_;
  ++events_run_;
  action();
}

Scheduler::Task* Scheduler::FreeTask() {
  if (free_tasks_.empty()) {
    tasks_.push_back(std::make_unique<Task>());
    return tasks_.back().get();
  }
  Task* const task = free_tasks_.back();
  free_tasks_.pop_back();
  return task;
}

void Scheduler::Start(Group* group, std::string name, std::function<void()> body) {
  Task* const task = FreeTask();
  task->fiber = std::make_unique<Fiber>(std::move(body));
  task->name = std::move(name);
  task->group = group;
  task->actor = group == nullptr ? kWorldActor : group->actor_;
  ++fibers_alive_;
  GiveTurn(task);
}

// Every turn is an event of its own, also right after a wake, so that the order of runnable fibers is drawn.
void Scheduler::GiveTurn(Task* task) {
  task->state = Task::State::kReady;
  At(now_, task->actor, "turn", [this, task] { TakeTurn(task); });
}

void Scheduler::TakeTurn(Task* task) {
  if (task->group != nullptr && task->group->held_) {
    task->group->turns_.push_back(task);
    return;
  }
  task->state = Task::State::kRunning;
  current_ = task;
  task->fiber->Resume();
  current_ = nullptr;
  if (!task->fiber->finished()) return;
  task->fiber.reset();
  task->state = Task::State::kFree;
  free_tasks_.push_back(task);
  --fibers_alive_;
}

Scheduler::Parking Scheduler::Here() {
  if (current_ == nullptr) {
    std::fputs("a call of a simulated process that waits was made outside of its fibers\n", stderr);
    std::abort();
  }
  return {current_, current_->wait};
}

void Scheduler::Park(std::string_view where, Interruptible interruptible) {
  Here();  // REQUIRES a fiber
  Task* const task = current_;
  task->state = Task::State::kParked;
  task->where = where;
  task->interruptible = interruptible;
  task->fiber->Yield();
}

void Scheduler::ParkUntil(Duration when, std::string_view where, Interruptible interruptible) {
  const Parking here = Here();
  const EventId timer = At(when, current_->actor, "timer", [this, here] { Wake(here); });
  Park(where, interruptible);
  Cancel(timer);
}

bool Scheduler::Wake(const Parking& parking) {
  Task* const task = parking.task_;
  if (ending_ || task == nullptr || task->wait != parking.number_ || task->state != Task::State::kParked) return false;
  ++task->wait;
  GiveTurn(task);
  return true;
}

std::string_view Scheduler::fiber_name() const {
  return current_ == nullptr ? std::string_view() : std::string_view(current_->name);
}

void Scheduler::Release(Group* group) {
  group->held_ = false;
  for (Task* task : std::exchange(group->turns_, {})) GiveTurn(task);
}

void Scheduler::Interrupt(const Group* group) {
  for (const std::unique_ptr<Task>& task : tasks_) {
    if (task->group != group || task->interruptible == Interruptible::kNo) continue;
    Wake({task.get(), task->wait});
  }
}

Scheduler::Report Scheduler::Run(const Bounds& bounds) {
  stopped_ = false;
  const uint64_t before = events_run_;
  Report report;
  for (;;) {
    report.events = events_run_ - before;
    if (stopped_) {
      report.ending = Ending::kStopped;
    } else if (events_left_ == 0) {
      report.ending = fibers_alive_ == 0 ? Ending::kDone : Ending::kStuck;
    } else if (report.events >= bounds.events) {
      report.ending = Ending::kEvents;
    } else if (queue_.front().time > bounds.until) {
      now_ = bounds.until;
      report.ending = Ending::kTime;
    } else {
      RunNext();
      continue;
    }
    if (report.ending != Ending::kDone) report.waiting = WhoWaits();
    return report;
  }
}

std::string Scheduler::WhoWaits() const {
  std::string out;
  for (const std::unique_ptr<Task>& task : tasks_) {
    if (task->state == Task::State::kFree) continue;
    const bool held = task->group != nullptr && task->group->held_;
    const std::string_view where = task->state == Task::State::kParked ? task->where : "its turn";
    out += StrCat(task->name, ": ", where, held ? " (paused)" : "", "\n");
  }
  return out;
}

}  // namespace percolator::sim
