// Process: a simulated process, which is the Runtime of the code that runs in it.
//
// Its tasks are fibers, its time is the scheduler's, its chance comes from the seed. It may be paused, and it may die.
//
// PAUSE  None of its fibers gets a turn for a while. What it has sent is on its way, answers wait for it.
//
// CRASH  There are no exceptions in this project, so a fiber can't be made to end. Instead nobody hears the process any
//        more: its calls fail at once with kUnavailable and reach no server, what it waits for does not come, its sleeps
//        are short, and its clock runs so far ahead that every deadline has passed. Its fibers go on as ghosts until they
//        have ended by themselves. Requests sent before stay on their way. Waits among its own fibers go on working, so
//        that it can wind up.

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

// Who wants to know what becomes of a process. Called in the middle of events: must not wait.
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
  // How often it was paused: tells one pause from another.
  uint64_t pauses() const { return pauses_; }

  // May be called from anywhere, also by its own fibers.
  void Crash();
  // A pause during a pause makes it no longer. Its own fiber that calls this stops at its next call.
  void Pause(Duration duration);
  void Resume();
  // Listeners must outlive it.
  void AddListener(ProcessListener* listener) { listeners_.push_back(listener); }

  // As Start, with a name for reports.
  void Start(std::string_view task_name, std::function<void()> task);

  // The seam of a call, for SimStore, SimOracle and SimCoordinator: here it may be paused or die.
  // False: it is dead, the call must fail. `steps` is what the call is about. REQUIRES: in a fiber of this process.
  bool EnterCall(CallKind kind, Steps steps = 0);
  // The request has left: again it may be paused or die.
  void AfterSend(CallKind kind, Steps steps = 0);
  // Waits to be woken by the answer, until then at most; `where` is a literal.
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
  // Pauses for a time that is drawn. The mishap is that of a short pause, those of longer ones come after it.
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
  Duration ghost_time_{0};  // how far ahead the clock of a dead process is
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_PROCESS_H_
