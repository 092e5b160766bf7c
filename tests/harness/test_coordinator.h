// SPDX-License-Identifier: Apache-2.0

// TestCoordinator: a local coordinator whose sessions a test can end, and which a test can make unreachable.

#ifndef PERCOLATOR_TESTS_HARNESS_TEST_COORDINATOR_H_
#define PERCOLATOR_TESTS_HARNESS_TEST_COORDINATOR_H_

#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "src/coord/local_coordinator.h"

namespace percolator {

class TestCoordinator final : public LocalCoordinator {
 public:
  using LocalCoordinator::LocalCoordinator;

  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override {
    absl::StatusOr<std::unique_ptr<Session>> session = LocalCoordinator::OpenSession();
    if (!session.ok()) return session;
    return std::make_unique<MortalSession>(this, *std::move(session));
  }
  absl::StatusOr<bool> IsAlive(SessionId session) override {
    if (absl::Status s = error(); !s.ok()) return s;
    return LocalCoordinator::IsAlive(session);
  }
  absl::StatusOr<Timestamp> OldestSnapshot() override {
    if (absl::Status s = error(); !s.ok()) return s;
    return LocalCoordinator::OldestSnapshot();
  }

  // The session counts as dead from now on, though its owner lives and continues (L1). No effect if it has ended
  // already.
  void EndSession(SessionId id) {
    MutexLock lock(&mutex_);
    sessions_.erase(id);
  }
  // Questions about sessions get this answer from now on. OK: the coordinator is reachable again.
  void AnswerWith(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }

 private:
  // The session as its owner holds it. The coordinator keeps the session itself.
  class MortalSession final : public Session {
   public:
    MortalSession(TestCoordinator* coordinator, std::unique_ptr<Session> session)
        : coordinator_(coordinator), id_(session->id()) {
      MutexLock lock(&coordinator_->mutex_);
      coordinator_->sessions_[id_] = std::move(session);
    }
    ~MortalSession() override { coordinator_->EndSession(id_); }
    MortalSession(const MortalSession&) = delete;
    MortalSession& operator=(const MortalSession&) = delete;

    SessionId id() const override { return id_; }
    bool alive() const override {
      MutexLock lock(&coordinator_->mutex_);
      return coordinator_->sessions_.contains(id_);
    }
    absl::Status ReportOldestSnapshot(Timestamp oldest) override {
      MutexLock lock(&coordinator_->mutex_);
      const auto it = coordinator_->sessions_.find(id_);
      if (it == coordinator_->sessions_.end()) return absl::FailedPreconditionError("the session has ended");
      return it->second->ReportOldestSnapshot(oldest);
    }

   private:
    TestCoordinator* const coordinator_;
    const SessionId id_;
  };

  absl::Status error() {
    MutexLock lock(&mutex_);
    return error_;
  }

  Mutex mutex_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_TEST_COORDINATOR_H_
