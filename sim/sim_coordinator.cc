// SPDX-License-Identifier: Apache-2.0

#include "sim/sim_coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/strings.h"

namespace percolator::sim {
namespace {

absl::Status NoAnswer() { return absl::UnavailableError("no answer from the coordinator"); }

template <typename T>
absl::StatusOr<T> OrNoAnswer(const std::optional<T>& answer) {
  return answer.has_value() ? absl::StatusOr<T>(*answer) : NoAnswer();
}

}  // namespace

// ----- The server

// It does not restart: its errors are drawn one by one.
CoordinatorServer::CoordinatorServer(Kernel* kernel) : Server(kernel, kCoordinatorActor, "coord", nullptr) {}

SessionId CoordinatorServer::Open(Process* process) {
  const SessionId session = next_session_++;
  sessions_.emplace(session, State{process, {}, false});
  // If the process never learned of its session, it does not renew it.
  const Duration patience = kernel_->faults.lease + kernel_->faults.call_timeout;
  kernel_->scheduler.At(kernel_->now() + patience, actor(), "orphan", [this, session] {
    const auto it = sessions_.find(session);
    if (it != sessions_.end() && !it->second.held) End(session);
  });
  return session;
}

void CoordinatorServer::Hold(SessionId session) {
  const auto it = sessions_.find(session);
  if (it != sessions_.end()) it->second.held = true;
}

void CoordinatorServer::End(SessionId session) {
  if (sessions_.erase(session) == 0) return;
  if (watcher_ != nullptr) watcher_->OnOldestSnapshot(session, Timestamp());
  Note(StrCat("session ", session, " ends"));
  std::erase_if(leaders_, [session](const auto& leader) { return leader.second == session; });
  std::erase_if(claims_, [session](const auto& claim) { return claim.second == session; });
}

void CoordinatorServer::EndAllOf(const Process* process) {
  std::vector<SessionId> ends;
  for (const auto& [session, state] : sessions_) {
    if (state.process == process) ends.push_back(session);
  }
  for (const SessionId session : ends) End(session);
}

void CoordinatorServer::OnCrash(Process* process) {
  const Duration lease = kernel_->faults.crash_ends_session ? Duration(0) : kernel_->faults.lease;
  kernel_->scheduler.At(kernel_->now() + lease, actor(), "lease over", [this, process] { EndAllOf(process); });
}

void CoordinatorServer::OnPause(Process* process) {
  const uint64_t pause = process->pauses();
  kernel_->scheduler.At(kernel_->now() + kernel_->faults.lease, actor(), "lease over", [this, process, pause] {
    if (process->paused() && process->pauses() == pause) EndAllOf(process);
  });
}

bool CoordinatorServer::Verdict(const Process& asker, SessionId session) {
  const Faults::Rates& rates = kernel_->faults.rates;
  const bool alive = IsAlive(session);
  const bool wrong = alive ? kernel_->chance.Happens(asker.id(), Site::kFalseDead, rates.false_dead)
                           : kernel_->chance.Happens(asker.id(), Site::kFalseAlive, rates.false_alive);
  if (kernel_->trace.on()) {
    kernel_->trace.Line(
        kernel_->now(), asker.name(),
        StrCat("session ", session, " alive? -> ", alive != wrong ? "yes" : "no", wrong ? " (wrong)" : ""));
  }
  return alive != wrong;
}

void CoordinatorServer::ReportOldest(SessionId session, Timestamp oldest) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  it->second.oldest = oldest;
  if (watcher_ != nullptr) watcher_->OnOldestSnapshot(session, oldest);
}

Timestamp CoordinatorServer::Oldest() const {
  Timestamp oldest = Timestamp::Infinity();
  for (const auto& [session, state] : sessions_) {
    if (state.oldest != Timestamp()) oldest = std::min(oldest, state.oldest);
  }
  return oldest;
}

bool CoordinatorServer::Campaign(const std::string& role, SessionId session) {
  return IsAlive(session) && leaders_.try_emplace(role, session).first->second == session;
}

bool CoordinatorServer::Claim(const std::string& table, const std::string& row, SessionId session) {
  return IsAlive(session) && claims_.try_emplace({table, row}, session).first->second == session;
}

void CoordinatorServer::Release(const std::string& table, const std::string& row, SessionId session) {
  const auto it = claims_.find({table, row});
  if (it != claims_.end() && it->second == session) claims_.erase(it);
}

void CoordinatorServer::Listen(Process* process, Coordinator::HintListener listener) {
  listeners_.erase(process->id());
  if (listener != nullptr) listeners_.emplace(process->id(), std::pair(process, std::move(listener)));
}

void CoordinatorServer::Hint(const Process& from, const CellName& cell) {
  const Faults::Rates& rates = kernel_->faults.rates;
  for (const auto& [id, listener] : listeners_) {
    if (id == from.id()) continue;
    if (kernel_->chance.Happens(from.id(), Site::kHintLost, rates.hint_lost)) continue;
    SendHint(from, id, cell);
    if (kernel_->chance.Happens(from.id(), Site::kHintTwice, rates.hint_twice)) SendHint(from, id, cell);
  }
}

void CoordinatorServer::SendHint(const Process& from, ActorId to, const CellName& cell) {
  const Faults& faults = kernel_->faults;
  const Duration delay =
      kernel_->chance.Between(from.id(), Site::kHintDelay, faults.latency_min, faults.latency_max * 2);
  kernel_->scheduler.At(kernel_->now() + delay, actor(), "hint", [this, to, cell] {
    const auto it = listeners_.find(to);  // it may be gone by now
    if (it == listeners_.end() || it->second.first->crashed()) return;
    const auto& [process, listener] = it->second;
    process->Start("hint", [listener = listener, cell] { listener(cell); });
  });
}

// ----- A client

class SimCoordinator::SimSession final : public Session {
 public:
  SimSession(SimCoordinator* coordinator, SessionId id) : coordinator_(coordinator), id_(id) {}

  // Sends a message without an answer. If it gets lost, the session is not renewed any more, and expires.
  ~SimSession() override {
    if (coordinator_->process_->crashed()) return;
    Kernel* const kernel = coordinator_->kernel_;
    CoordinatorServer* const server = coordinator_->server_;
    const Passage passage = DrawPassage(kernel, *coordinator_->process_, Duplicates::kNever);
    const Duration delay = passage.request_lost ? kernel->faults.lease : passage.there;
    kernel->scheduler.At(kernel->now() + delay, coordinator_->process_->id(), "end of session",
                         [server, id = id_] { server->End(id); });
  }

  SessionId id() const override { return id_; }
  bool alive() const override { return !coordinator_->process_->crashed() && coordinator_->server_->IsAlive(id_); }
  absl::Status ReportOldestSnapshot(Timestamp oldest) override {
    const std::optional<bool> answer =
        coordinator_->Ask<bool>(Step::kReportSnapshot, [server = coordinator_->server_, id = id_, oldest] {
          server->ReportOldest(id, oldest);
          return server->IsAlive(id);
        });
    if (!answer.has_value()) return NoAnswer();
    return *answer ? absl::OkStatus() : absl::FailedPreconditionError(StrCat("session ", id_, " has ended"));
  }

 private:
  SimCoordinator* const coordinator_;
  const SessionId id_;
};

template <typename Answer>
std::optional<Answer> SimCoordinator::Ask(Step step, std::function<Answer()> serve) {
  const Steps steps = Only(step);
  if (!process_->EnterCall(CallKind::kCoordinator, steps)) return std::nullopt;
  Call<Answer> call(kernel_, process_, CallKind::kCoordinator, 1);
  call.About(steps);
  call.Send(0, DrawPassage(kernel_, *process_, Duplicates::kNever, steps), server_,
            [serve = std::move(serve)](Responder<Answer> reply) { reply(serve()); });
  return std::move(call.Wait().front());
}

absl::StatusOr<std::unique_ptr<Session>> SimCoordinator::OpenSession() {
  const std::optional<SessionId> id =
      Ask<SessionId>(Step::kOpenSession, [server = server_, process = process_] { return server->Open(process); });
  if (!id.has_value()) return NoAnswer();
  server_->Hold(*id);
  return std::make_unique<SimSession>(this, *id);
}

absl::StatusOr<bool> SimCoordinator::IsAlive(SessionId session) {
  return OrNoAnswer(Ask<bool>(
      Step::kIsAlive, [server = server_, process = process_, session] { return server->Verdict(*process, session); }));
}

absl::StatusOr<Timestamp> SimCoordinator::OldestSnapshot() {
  return OrNoAnswer(Ask<Timestamp>(Step::kOldestSnapshot, [server = server_] { return server->Oldest(); }));
}

absl::StatusOr<bool> SimCoordinator::Campaign(std::string_view role, const Session& session) {
  return OrNoAnswer(Ask<bool>(Step::kCampaign, [server = server_, role = std::string(role), id = session.id()] {
    return server->Campaign(role, id);
  }));
}

absl::StatusOr<bool> SimCoordinator::Claim(std::string_view table, std::string_view row, const Session& session) {
  return OrNoAnswer(Ask<bool>(Step::kClaim, [server = server_, table = std::string(table), row = std::string(row),
                                             id = session.id()] { return server->Claim(table, row, id); }));
}

absl::Status SimCoordinator::Release(std::string_view table, std::string_view row, const Session& session) {
  const std::optional<bool> answer = Ask<bool>(
      Step::kClaim, [server = server_, table = std::string(table), row = std::string(row), id = session.id()] {
        server->Release(table, row, id);
        return true;
      });
  return answer.has_value() ? absl::OkStatus() : NoAnswer();
}

void SimCoordinator::SendHint(const CellName& cell) {
  if (!process_->crashed()) server_->Hint(*process_, cell);
}

}  // namespace percolator::sim
