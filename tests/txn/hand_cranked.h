// An oracle and a coordinator that do what a test tells them.

#ifndef PERCOLATOR_TESTS_TXN_HAND_CRANKED_H_
#define PERCOLATOR_TESTS_TXN_HAND_CRANKED_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"

namespace percolator {

// Hands out 1, 2, 3, ... or what it is set to; and as the real one, nothing less than the time in microseconds.
class HandOracle : public Oracle {
 public:
  explicit HandOracle(Runtime* runtime) : runtime_(runtime) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    MutexLock lock(&mutex_);
    if (!error_.ok()) return error_;
    const uint64_t first = std::max(next_, static_cast<uint64_t>(runtime_->Elapsed().count()));
    next_ = first + count;
    return Timestamp(first);
  }

  // The next timestamp will be this one, even if it is too small.
  void SetNext(uint64_t ts) {
    MutexLock lock(&mutex_);
    next_ = ts;
  }
  // So many microseconds pass for the oracle alone.
  void Advance(uint64_t micros) {
    MutexLock lock(&mutex_);
    next_ += micros;
  }
  Timestamp next() const {
    MutexLock lock(&mutex_);
    return Timestamp(next_);
  }
  // From now on it answers with this; OK: as it should.
  void AnswerWith(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }

 private:
  Runtime* const runtime_;
  mutable Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

// Sessions 1, 2, 3, ... that live until they are ended or declared dead.
class HandCoordinator : public Coordinator {
 public:
  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override {
    MutexLock lock(&mutex_);
    const SessionId id = ++last_session_;
    sessions_[id] = Timestamp();
    return std::make_unique<HandSession>(this, id);
  }
  absl::StatusOr<bool> IsAlive(SessionId session) override {
    MutexLock lock(&mutex_);
    if (!error_.ok()) return error_;
    return sessions_.contains(session);
  }
  absl::StatusOr<Timestamp> OldestSnapshot() override {
    MutexLock lock(&mutex_);
    if (!error_.ok()) return error_;
    Timestamp oldest = Timestamp::Infinity();
    for (const auto& [session, reported] : sessions_) {
      if (reported != Timestamp()) oldest = std::min(oldest, reported);
    }
    return oldest;
  }
  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override {
    MutexLock lock(&mutex_);
    return leaders_.try_emplace(std::string(role), session.id()).first->second == session.id();
  }
  absl::StatusOr<bool> Claim(std::string_view /*table*/, std::string_view /*row*/,
                             const Session& /*session*/) override {
    return true;
  }
  absl::Status Release(std::string_view /*table*/, std::string_view /*row*/, const Session& /*session*/) override {
    return absl::OkStatus();
  }
  void SendHint(const CellName& /*cell*/) override {}
  void SetHintListener(HintListener /*listener*/) override {}

  // From now on the session counts as dead, whatever its owner does.
  void DeclareDead(SessionId session) {
    MutexLock lock(&mutex_);
    sessions_.erase(session);
  }
  // Reachable or not.
  void AnswerWith(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }

 private:
  class HandSession final : public Session {
   public:
    HandSession(HandCoordinator* coordinator, SessionId id) : coordinator_(coordinator), id_(id) {}
    ~HandSession() override { coordinator_->DeclareDead(id_); }
    SessionId id() const override { return id_; }
    bool alive() const override { return true; }
    absl::Status ReportOldestSnapshot(Timestamp oldest) override {
      MutexLock lock(&coordinator_->mutex_);
      const auto it = coordinator_->sessions_.find(id_);
      if (it != coordinator_->sessions_.end()) it->second = oldest;
      return absl::OkStatus();
    }

   private:
    HandCoordinator* const coordinator_;
    const SessionId id_;
  };

  Mutex mutex_;
  SessionId last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<SessionId, Timestamp> sessions_ ABSL_GUARDED_BY(mutex_);  // and the oldest snapshot each reports
  std::map<std::string, SessionId> leaders_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TXN_HAND_CRANKED_H_
