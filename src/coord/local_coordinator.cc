// SPDX-License-Identifier: Apache-2.0

#include "src/coord/local_coordinator.h"

#include <utility>

#include "percolator/status_macros.h"

namespace percolator {

class LocalCoordinator::LocalSession final : public Session {
 public:
  LocalSession(SessionTable* sessions, SessionId id) : sessions_(sessions), id_(id) {
    sessions_->Report(id_, Timestamp());
  }
  ~LocalSession() override { sessions_->End(id_); }
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;

  SessionId id() const override { return id_; }
  bool alive() const override { return true; }
  absl::Status ReportOldestSnapshot(Timestamp oldest) override {
    sessions_->Report(id_, oldest);
    return absl::OkStatus();
  }

 private:
  SessionTable* const sessions_;
  const SessionId id_;
};

LocalCoordinator::LocalCoordinator(Oracle* oracle, Runtime* runtime) : oracle_(oracle), listener_(runtime) {}

LocalCoordinator::~LocalCoordinator() = default;

absl::StatusOr<std::unique_ptr<Session>> LocalCoordinator::OpenSession() {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp drawn, oracle_->GetTimestamp());
  return std::make_unique<LocalSession>(&sessions_, drawn.value());
}

absl::StatusOr<bool> LocalCoordinator::IsAlive(SessionId session) { return sessions_.Exists(session); }

absl::StatusOr<Timestamp> LocalCoordinator::OldestSnapshot() { return sessions_.OldestSnapshot(); }

absl::StatusOr<bool> LocalCoordinator::Campaign(std::string_view role, const Session& session) {
  return sessions_.Campaign(role, session.id());
}

absl::StatusOr<bool> LocalCoordinator::Claim(std::string_view table, std::string_view row, const Session& session) {
  return sessions_.Claim(table, row, session.id());
}

absl::Status LocalCoordinator::Release(std::string_view table, std::string_view row, const Session& session) {
  sessions_.Release(table, row, session.id());
  return absl::OkStatus();
}

void LocalCoordinator::SendHint(const CellName& cell) { listener_.Tell(cell); }

void LocalCoordinator::SetHintListener(HintListener listener) { listener_.Set(std::move(listener)); }

std::unique_ptr<Coordinator> NewLocalCoordinator(Oracle* oracle) { return std::make_unique<LocalCoordinator>(oracle); }

}  // namespace percolator
