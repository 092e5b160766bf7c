// SPDX-License-Identifier: Apache-2.0

// Process: a simulated process, which is the Runtime of the code that runs in it.
//
// Its tasks are fibers, its time is the scheduler's, its chance comes from the seed. It may be paused, and it may die.
//
// PAUSE  None of its fibers gets a turn for a while. Its messages travel on, and answers wait for it.
//
// CRASH  This project uses no exceptions, so a fiber cannot be made to end. Instead the process is cut off: its calls
// fail at once with Unavailable and reach no server, it gets no answers, its sleeps are short, and its clock runs so
// far ahead that every deadline has passed. Its fibers continue as ghosts until they end by themselves. Requests sent
// before stay on their way. Waits among its own fibers still work, so that they can end.

#ifndef PERCOLATOR_SIM_PROCESS_H_
#define PERCOLATOR_SIM_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "percolator/spi/runtime.h"
#include "sim/kernel.h"

namespace percolator::sim {

class Process;

// Is notified of the crash of a process, in the middle of an event: must not wait.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  virtual void OnCrash(Process* /*process*/) {}
  virtual void OnPause(Process* /*process*/) {}
  virtual void OnSessionLost(Process* /*process*/) {}
};

class Process final : public Runtime {
 public:
  Process(Kernel* kernel, ActorId id, std::string name);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  ActorId id() const { return id_; }
  const std::string& name() const { return name_; }
  bool crashed() const { return crashed_; }
  bool paused() const { return paused_; }
  // The number of pauses, to distinguish one pause from another.
  uint64_t pauses() const { return pauses_; }

  // May be called from anywhere, even by its own fibers.
  void Crash();
  // A pause during a pause does not make it longer. If a fiber of the process calls this, it stops at its next call.
  void Pause(Duration duration);
  void Resume();
  // Listeners must outlive the process.
  void AddListener(ProcessListener* listener) { listeners_.push_back(listener); }

  // As Start, with a name for reports.
  void Start(std::string_view task_name, std::function<void()> task);

  // The seam of a call, for SimStore, SimOracle and SimCoordinator: here the process may be paused or die. Returns
  // false if it is dead: then the call must fail. `steps` are the steps of the call. REQUIRES: called in a fiber of
  // this process.
  bool EnterCall(CallKind kind, Steps steps = 0);
  // The request has been sent: here too the process may be paused or die.
  void AfterSend(CallKind kind, Steps steps = 0);
  // Waits until the answer wakes it, or until the deadline; `where` is a literal.
  void AwaitAnswer(std::string_view where, Duration deadline);

  // Runtime.
  Duration Elapsed() override;
  void Sleep(Duration duration) override;
  uint64_t Random() override { return kernel_->chance.Draw(id_, Site::kRuntimeRandom); }
  void Start(std::function<void()> task) override { Start("task", std::move(task)); }
  uint64_t CurrentTask() override { return kernel_->scheduler.fiber_id(); }
  std::unique_ptr<WaitQueue> NewWaitQueue() override;

 private:
  class Queue;

  double FocusFactor(CallKind kind, Steps steps) const;
  // Pauses for a drawn time. The mishaps of longer pauses follow that of a short one.
  void PauseFor(Steps steps, Mishap shortest);
  void StopIfPaused();
  void GhostStep(Duration duration);
  void Note(std::string_view what);

  Kernel* const kernel_;
  const ActorId id_;
  const std::string name_;
  const Duration clock_start_;
  Scheduler::Group group_;
  std::vector<ProcessListener*> listeners_;

  bool crashed_ = false;
  bool paused_ = false;
  uint64_t pauses_ = 0;
  uint64_t tasks_ = 0;
  Duration ghost_time_{0};  // the amount by which the clock of a dead process runs ahead
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_PROCESS_H_
