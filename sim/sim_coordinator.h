// SPDX-License-Identifier: Apache-2.0

// The simulated coordinator: the server that all processes share, and the Coordinator of one process.
//
// A session lives while its process does. It ends when it is destroyed; Faults::lease after its process died (or at
// once); when its process is paused for longer than the lease; and sometimes for no reason. The server also gives wrong
// answers sometimes: it reports a live session as dead, or a dead one as alive. Renewals are not messages here: the
// server knows the state of its processes.

#ifndef PERCOLATOR_SIM_SIM_COORDINATOR_H_
#define PERCOLATOR_SIM_SIM_COORDINATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "percolator/spi/coordinator.h"
#include "sim/network.h"

namespace percolator::sim {

// Is notified of the reports of sessions, in the middle of events: must not wait.
class CoordinatorWatcher {
 public:
  virtual ~CoordinatorWatcher() = default;
  // The session holds snapshots from `oldest` on. Zero: it holds none any more, or it has ended.
  virtual void OnOldestSnapshot(SessionId session, Timestamp oldest) = 0;
};

class CoordinatorServer final : public Server, public ProcessListener {
 public:
  explicit CoordinatorServer(Kernel* kernel);

  SessionId Open(Process* process);
  // The process knows of its session: from now on it renews it.
  void Hold(SessionId session);
  void End(SessionId session);
  // The truth, without the errors of SimCoordinator::IsAlive.
  bool IsAlive(SessionId session) const { return sessions_.contains(session); }
  // The answer to a process that asks.
  bool Verdict(const Process& asker, SessionId session);
  void ReportOldest(SessionId session, Timestamp oldest);
  Timestamp Oldest() const;
  bool Campaign(const std::string& role, SessionId session);
  bool Claim(const std::string& table, const std::string& row, SessionId session);
  void Release(const std::string& table, const std::string& row, SessionId session);
  void Hint(const Process& from, const CellName& cell);
  void Listen(Process* process, Coordinator::HintListener listener);
  // May be null; must outlive this.
  void SetWatcher(CoordinatorWatcher* watcher) { watcher_ = watcher; }

 private:
  using RowName = std::pair<std::string, std::string>;
  struct State {
    Process* process;
    Timestamp oldest;  // zero: none
    bool held;
  };

  void OnRestart() override {}
  void OnCrash(Process* process) override;
  void OnPause(Process* process) override;
  void OnSessionLost(Process* process) override { EndAllOf(process); }
  void EndAllOf(const Process* process);
  void SendHint(const Process& from, ActorId to, const CellName& cell);

  CoordinatorWatcher* watcher_ = nullptr;
  SessionId next_session_ = 1;
  std::map<SessionId, State> sessions_;  // that live
  std::map<std::string, SessionId> leaders_;
  std::map<RowName, SessionId> claims_;
  std::map<ActorId, std::pair<Process*, Coordinator::HintListener>> listeners_;
};

class SimCoordinator final : public Coordinator {
 public:
  // All must outlive this.
  SimCoordinator(Kernel* kernel, Process* process, CoordinatorServer* server)
      : kernel_(kernel), process_(process), server_(server) {}

  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override;
  absl::StatusOr<bool> IsAlive(SessionId session) override;
  absl::StatusOr<Timestamp> OldestSnapshot() override;
  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override;
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override;
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override;
  void SendHint(const CellName& cell) override;
  void SetHintListener(HintListener listener) override { server_->Listen(process_, std::move(listener)); }

 private:
  class SimSession;

  // Sends one message. Returns nullopt if there is no answer.
  template <typename Answer>
  std::optional<Answer> Ask(Step step, std::function<Answer()> serve);

  Kernel* const kernel_;
  Process* const process_;
  CoordinatorServer* const server_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_SIM_COORDINATOR_H_
