// SPDX-License-Identifier: Apache-2.0

// Scheduler: virtual time, and the events in it.
//
// There is one queue of events, ordered by time, and at equal times by a number drawn from the seed. An event is a
// function that runs at its time and does not wait, or the turn of a fiber. A fiber that waits is parked, and another
// fiber or an event wakes it, which gives it a turn. Time passes only between events, so a run takes as long as its
// events take to compute, and depends only on the seed.
//
//     Parking here = scheduler.Here();           // in a fiber
//     scheduler.At(later, actor, "timer", [=] { scheduler->Wake(here); });
//     scheduler.Park("timer");
//
// A run without events whose fibers still wait is stuck, and reports where each fiber waits.
//
// Fibers may belong to a group: those of one process. A group can be held (its fibers get no turns) and interrupted.

#ifndef PERCOLATOR_SIM_SCHEDULER_H_
#define PERCOLATOR_SIM_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "percolator/options.h"
#include "sim/chance.h"
#include "sim/fiber.h"
#include "sim/trace.h"

namespace percolator::sim {

class Scheduler {
 private:
  struct Task;

 public:
  using Action = absl::AnyInvocable<void()>;

  // Fibers of one process.
  class Group {
   public:
    explicit Group(ActorId actor) : actor_(actor) {}

   private:
    friend class Scheduler;
    const ActorId actor_;
    bool held_ = false;
    std::vector<Task*> turns_;  // turns that came while it was held
  };

  // A wait of a fiber: past, present or future.
  class Parking {
   public:
    Parking() = default;
    friend bool operator==(const Parking&, const Parking&) = default;

   private:
    friend class Scheduler;
    Parking(Task* task, uint64_t number) : task_(task), number_(number) {}
    Task* task_ = nullptr;
    uint64_t number_ = 0;
  };

  // A future event.
  struct EventId {
    uint32_t slot = std::numeric_limits<uint32_t>::max();
    uint64_t number = 0;
  };

  // Whether Interrupt ends a wait.
  enum class Interruptible : uint8_t { kNo, kYes };

  Scheduler(Chance* chance, Trace* trace);
  // Calls Clear.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The time since the beginning of the run.
  Duration now() const { return now_; }

  // Runs `action` at that time, or now if the time is past. It must not wait. `actor` is the actor whose draws decide
  // the order among events at the same time. `label` is a literal: it must live as long as the scheduler.
  EventId At(Duration when, ActorId actor, std::string_view label, Action action);
  // Cancels the event, if it has not run.
  void Cancel(const EventId& event);

  // Starts a fiber. It gets its first turn after the caller has yielded. `group` may be null.
  void Start(Group* group, std::string name, std::function<void()> body);

  // Names the next wait of the calling fiber.
  Parking Here();
  // Waits, in a fiber, until woken. `where` is a literal, shown in the report of a run that is stuck.
  void Park(std::string_view where, Interruptible interruptible = Interruptible::kNo);
  // Waits, in a fiber, until that time, or until woken or interrupted.
  void ParkUntil(Duration when, std::string_view where, Interruptible interruptible = Interruptible::kNo);
  // Ends the wait. Returns false if it was over already.
  bool Wake(const Parking& parking);
  // Identifies the running fiber; zero outside of fibers.
  uint64_t fiber_id() const { return reinterpret_cast<uint64_t>(current_); }
  // The name of the running fiber, such as "p1/2"; empty outside of fibers.
  std::string_view fiber_name() const;

  void Hold(Group* group) { group->held_ = true; }
  void Release(Group* group);
  // Ends all waits of the group that can be interrupted.
  void Interrupt(const Group* group);

  struct Bounds {
    uint64_t events = std::numeric_limits<uint64_t>::max();  // of this Run
    Duration until = Duration::max();                        // virtual time
  };
  enum class Ending : uint8_t {
    kDone,    // no event is left, and all fibers have ended
    kStuck,   // no event is left, but fibers wait
    kEvents,  // the max number of events have run
    kTime,    // the time is over
    kStopped,
  };
  struct Report {
    Ending ending = Ending::kDone;
    uint64_t events = 0;
    std::string waiting;  // unless done: a line for each fiber, with its name and where it waits
  };
  // Runs events until none is left or a bound is reached. May be called again to continue. REQUIRES: the caller is not
  // a fiber.
  Report Run(const Bounds& bounds);
  // Makes Run return after the current event.
  void Stop() { stopped_ = true; }
  // Drops all events and fibers; objects on the stacks of the fibers are not destroyed.
  void Clear();
  uint64_t events_run() const { return events_run_; }

 private:
  struct Slot;
  struct Entry;

  void RunNext();
  void GiveTurn(Task* task);
  void TakeTurn(Task* task);
  Task* FreeTask();
  std::string WhoWaits() const;

  Chance* const chance_;
  Trace* const trace_;
  Duration now_{0};
  bool stopped_ = false;
  bool ending_ = false;  // cleared: accepts no more events

  std::vector<Entry> queue_;  // a heap; entries of cancelled events stay in it
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  uint64_t next_event_ = 1;
  uint64_t events_run_ = 0;
  size_t events_left_ = 0;  // without cancelled ones

  std::vector<std::unique_ptr<Task>> tasks_;  // finished ones are reused
  std::vector<Task*> free_tasks_;
  size_t fibers_alive_ = 0;
  Task* current_ = nullptr;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_SCHEDULER_H_
