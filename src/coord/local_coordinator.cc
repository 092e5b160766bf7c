#include "src/coord/local_coordinator.h"

#include <algorithm>

#include "src/base/strings.h"

namespace percolator {

class LocalCoordinator::LocalSession final : public Session {
 public:
  LocalSession(LocalCoordinator* coordinator, SessionId id) : coordinator_(coordinator), id_(id) {}
  ~LocalSession() override { coordinator_->EndSession(id_); }
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;

  SessionId id() const override { return id_; }
  bool alive() const override { return true; }
  absl::Status ReportOldestSnapshot(Timestamp oldest) override {
    return coordinator_->ReportOldestSnapshot(id_, oldest);
  }

 private:
  LocalCoordinator* const coordinator_;
  const SessionId id_;
};

// A listener, and how many calls of it are under way.
struct LocalCoordinator::Listening {
  Listening(HintListener to, Runtime* runtime) : listener(std::move(to)), idle(runtime->NewWaitQueue()) {}

  const HintListener listener;
  int calls = 0;                    // guarded by hint_mutex_
  std::unique_ptr<WaitQueue> idle;  // the last of the calls has ended
};

LocalCoordinator::LocalCoordinator(Oracle* oracle, Runtime* runtime) : oracle_(oracle), runtime_(runtime) {}

LocalCoordinator::~LocalCoordinator() = default;

absl::StatusOr<std::unique_ptr<Session>> LocalCoordinator::OpenSession() {
  const absl::StatusOr<Timestamp> drawn = oracle_->GetTimestamp();
  if (!drawn.ok()) return drawn.status();
  const SessionId id = drawn->value();
  MutexLock lock(&mutex_);
  sessions_.emplace(id, Timestamp());
  return std::make_unique<LocalSession>(this, id);
}

void LocalCoordinator::EndSession(SessionId session) {
  MutexLock lock(&mutex_);
  const auto is_of_session = [session](const auto& held) { return held.second == session; };
  std::erase_if(leaders_, is_of_session);
  absl::erase_if(claims_, is_of_session);
  sessions_.erase(session);
}

absl::StatusOr<bool> LocalCoordinator::IsAlive(SessionId session) {
  MutexLock lock(&mutex_);
  return sessions_.contains(session);
}

absl::Status LocalCoordinator::CheckExists(SessionId session) const {
  if (sessions_.contains(session)) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("there is no session ", session));
}

absl::Status LocalCoordinator::ReportOldestSnapshot(SessionId session, Timestamp oldest) {
  MutexLock lock(&mutex_);
  sessions_[session] = oldest;
  return absl::OkStatus();
}

absl::StatusOr<Timestamp> LocalCoordinator::OldestSnapshot() {
  MutexLock lock(&mutex_);
  Timestamp oldest = Timestamp::Infinity();
  for (const auto& [session, reported] : sessions_) {
    if (reported != Timestamp()) oldest = std::min(oldest, reported);
  }
  return oldest;
}

absl::StatusOr<bool> LocalCoordinator::Campaign(std::string_view role, const Session& session) {
  MutexLock lock(&mutex_);
  if (absl::Status s = CheckExists(session.id()); !s.ok()) return s;
  const auto leader = leaders_.try_emplace(std::string(role), session.id()).first;
  return leader->second == session.id();
}

absl::StatusOr<bool> LocalCoordinator::Claim(std::string_view table, std::string_view row, const Session& session) {
  MutexLock lock(&mutex_);
  if (absl::Status s = CheckExists(session.id()); !s.ok()) return s;
  const auto claim = claims_.try_emplace(TableRow(table, row), session.id()).first;
  return claim->second == session.id();
}

absl::Status LocalCoordinator::Release(std::string_view table, std::string_view row, const Session& session) {
  MutexLock lock(&mutex_);
  const auto claim = claims_.find(TableRow(table, row));
  if (claim != claims_.end() && claim->second == session.id()) claims_.erase(claim);
  return absl::OkStatus();
}

// The listener is called without the mutex: it may wait, and may send hints itself.
void LocalCoordinator::SendHint(const CellName& cell) {
  std::shared_ptr<Listening> listening;
  {
    MutexLock lock(&hint_mutex_);
    if (listening_ == nullptr) return;
    listening = listening_;
    ++listening->calls;
  }
  listening->listener(cell);
  MutexLock lock(&hint_mutex_);
  if (--listening->calls == 0) listening->idle->WakeAll();
}

void LocalCoordinator::SetHintListener(HintListener listener) {
  std::shared_ptr<Listening> next;
  if (listener != nullptr) next = std::make_shared<Listening>(std::move(listener), runtime_);
  std::shared_ptr<Listening> former;  // destroyed after the mutex is released, with what its listener holds
  MutexLock lock(&hint_mutex_);
  former = std::exchange(listening_, std::move(next));
  while (former != nullptr && former->calls > 0) former->idle->Wait(&hint_mutex_);
}

std::unique_ptr<Coordinator> NewLocalCoordinator(Oracle* oracle) { return std::make_unique<LocalCoordinator>(oracle); }

}  // namespace percolator
