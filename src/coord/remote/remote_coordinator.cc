// SPDX-License-Identifier: Apache-2.0

#include "src/coord/remote/remote_coordinator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "percolator/status_macros.h"

namespace percolator {
namespace {

using CoordinationStub = v1::Coordination::Stub;

constexpr int kMaxWaitingHints = 10'000;
// The pause before a broken stream is opened again.
constexpr Duration kListenAgain = std::chrono::milliseconds(50);
// Short, so that the process can end.
constexpr Duration kEndSessionTimeout = std::chrono::seconds(1);

}  // namespace

class RemoteCoordinator::RemoteSession final : public Session {
 public:
  RemoteSession(RemoteCoordinator* coordinator, SessionId id, Duration ttl, uint64_t renewed)
      : coordinator_(coordinator),
        id_(id),
        changed_(coordinator->runtime_->NewWaitQueue()),
        ttl_(ttl),
        renewed_(renewed),
        thread_([this] { KeepAlive(); }) {}

  ~RemoteSession() override {
    {
      MutexLock lock(&mutex_);
      ending_ = true;
      changed_->WakeAll();
    }
    thread_.join();
    v1::EndSessionRequest request;
    request.set_session(id_);
    v1::EndSessionResponse response;
    // Ignores errors: the session expires in any case.
    Call(*coordinator_->stub_, &CoordinationStub::EndSession, std::min(kEndSessionTimeout, coordinator_->timeout_),
         request, &response)
        .IgnoreError();
  }
  RemoteSession(const RemoteSession&) = delete;
  RemoteSession& operator=(const RemoteSession&) = delete;

  SessionId id() const override { return id_; }

  bool alive() const override {
    MutexLock lock(&mutex_);
    return coordinator_->clock_->BootMicros() < renewed_ + static_cast<uint64_t>(ttl_.count());
  }

  absl::Status ReportOldestSnapshot(Timestamp oldest) override {
    {
      MutexLock lock(&mutex_);
      oldest_ = oldest;
    }
    return SendOne();
  }

 private:
  // Counts the time to live from when the request was sent, because it arrived later. Sends one request at a time: otherwise
  // an older report could arrive after a newer one, and versions that a snapshot needs could be collected.
  absl::Status SendOne() ABSL_LOCKS_EXCLUDED(talking_) {
    MutexLock talking(&talking_);
    const uint64_t sent = coordinator_->clock_->BootMicros();
    v1::KeepAliveRequest request;
    request.set_session(id_);
    Duration timeout;
    {
      MutexLock lock(&mutex_);
      request.set_oldest_snapshot(oldest_.value());
      timeout = std::min(coordinator_->timeout_, ttl_);
    }
    v1::KeepAliveResponse response;
    PERCOLATOR_RETURN_IF_ERROR(Call(*coordinator_->stub_, &CoordinationStub::KeepAlive, timeout, request, &response));
    MutexLock lock(&mutex_);
    renewed_ = std::max(renewed_, sent);
    ttl_ = std::chrono::milliseconds(response.ttl_ms());
    return absl::OkStatus();
  }

  void KeepAlive() {
    for (;;) {
      {
        MutexLock lock(&mutex_);
        if (!ending_) changed_->WaitFor(&mutex_, ttl_ / 4);
        if (ending_) return;
      }
      if (!SendOne().ok()) WaitForConnection(*coordinator_->channel_, kListenAgain);
    }
  }

  RemoteCoordinator* const coordinator_;
  const SessionId id_;
  Mutex talking_;  // held during a KeepAlive request
  mutable Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Duration ttl_ ABSL_GUARDED_BY(mutex_);
  // The time of Clock::BootMicros before the last successful renewal. BootMicros goes on while this machine sleeps.
  uint64_t renewed_ ABSL_GUARDED_BY(mutex_);
  Timestamp oldest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

RemoteCoordinator::RemoteCoordinator(std::shared_ptr<grpc::Channel> channel, Duration timeout, Clock* clock)
    : channel_(std::move(channel)),
      stub_(v1::Coordination::NewStub(channel_)),
      timeout_(timeout),
      clock_(clock),
      sender_(runtime_->Random()),
      listener_(runtime_),
      changed_(runtime_->NewWaitQueue()),
      sending_([this] { SendHints(); }) {}

RemoteCoordinator::~RemoteCoordinator() {
  SetHintListener(nullptr);
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_->WakeAll();
  }
  sending_.join();
}

absl::StatusOr<std::unique_ptr<Session>> RemoteCoordinator::OpenSession() {
  const uint64_t sent = clock_->BootMicros();
  v1::OpenSessionResponse response;
  PERCOLATOR_RETURN_IF_ERROR(
      Call(*stub_, &CoordinationStub::OpenSession, timeout_, v1::OpenSessionRequest(), &response));
  return std::make_unique<RemoteSession>(this, response.session(), std::chrono::milliseconds(response.ttl_ms()), sent);
}

absl::StatusOr<bool> RemoteCoordinator::IsAlive(SessionId session) {
  v1::IsAliveRequest request;
  request.set_session(session);
  v1::IsAliveResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Call(*stub_, &CoordinationStub::IsAlive, timeout_, request, &response));
  return response.alive();
}

absl::StatusOr<Timestamp> RemoteCoordinator::OldestSnapshot() {
  v1::OldestSnapshotResponse response;
  PERCOLATOR_RETURN_IF_ERROR(
      Call(*stub_, &CoordinationStub::OldestSnapshot, timeout_, v1::OldestSnapshotRequest(), &response));
  return response.has_timestamp() ? Timestamp(response.timestamp()) : Timestamp::Infinity();
}

absl::StatusOr<bool> RemoteCoordinator::Campaign(std::string_view role, const Session& session) {
  v1::CampaignRequest request;
  request.set_role(std::string(role));
  request.set_session(session.id());
  v1::CampaignResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Call(*stub_, &CoordinationStub::Campaign, timeout_, request, &response));
  return response.leads();
}

absl::StatusOr<bool> RemoteCoordinator::Claim(std::string_view table, std::string_view row, const Session& session) {
  v1::ClaimRequest request;
  request.set_table(std::string(table));
  request.set_row(std::string(row));
  request.set_session(session.id());
  v1::ClaimResponse response;
  PERCOLATOR_RETURN_IF_ERROR(Call(*stub_, &CoordinationStub::Claim, timeout_, request, &response));
  return response.granted();
}

absl::Status RemoteCoordinator::Release(std::string_view table, std::string_view row, const Session& session) {
  v1::ReleaseRequest request;
  request.set_table(std::string(table));
  request.set_row(std::string(row));
  request.set_session(session.id());
  v1::ReleaseResponse response;
  return Call(*stub_, &CoordinationStub::Release, timeout_, request, &response);
}

void RemoteCoordinator::SendHint(const CellName& cell) {
  listener_.Tell(cell);
  MutexLock lock(&mutex_);
  if (waiting_.cells_size() >= kMaxWaitingHints) return;
  v1::CellName* const hint = waiting_.add_cells();
  hint->set_table(cell.table);
  hint->set_row(cell.row);
  hint->set_column(cell.column);
  if (waiting_.cells_size() == 1) changed_->WakeOne();
}

// Sends one request at a time, so that hints gather until the answer.
void RemoteCoordinator::SendHints() {
  for (;;) {
    v1::SendHintsRequest request;
    {
      MutexLock lock(&mutex_);
      while (waiting_.cells_size() == 0 && !ending_) changed_->Wait(&mutex_);
      if (ending_) return;
      request.Swap(&waiting_);
    }
    request.set_sender(sender_);
    v1::SendHintsResponse response;
    Call(*stub_, &CoordinationStub::SendHints, timeout_, request, &response).IgnoreError();
  }
}

void RemoteCoordinator::SetHintListener(HintListener listener) {
  const bool receives = listener != nullptr;
  listener_.Set(std::move(listener));
  MutexLock starting(&receiving_mutex_);
  if (!receives) {
    StopReceiving();
    if (receiving_thread_.joinable()) receiving_thread_.join();
    return;
  }
  if (receiving_thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    receiving_ = true;
  }
  receiving_thread_ = std::thread([this] { ReceiveHints(); });
}

void RemoteCoordinator::StopReceiving() {
  MutexLock lock(&mutex_);
  receiving_ = false;
  if (stream_ != nullptr) stream_->TryCancel();
  changed_->WakeAll();
}

void RemoteCoordinator::ReceiveHints() {
  for (;;) {
    ReceiveOneStream();
    WaitForConnection(*channel_, kListenAgain);
    MutexLock lock(&mutex_);
    if (receiving_) changed_->WaitFor(&mutex_, kListenAgain);
    if (!receiving_) return;
  }
}

void RemoteCoordinator::ReceiveOneStream() {
  grpc::ClientContext context;
  {
    MutexLock lock(&mutex_);
    if (!receiving_) return;
    stream_ = &context;
  }
  v1::ListenRequest request;
  request.set_sender(sender_);
  const std::unique_ptr<grpc::ClientReader<v1::Hints>> reader = stub_->Listen(&context, request);
  v1::Hints hints;
  while (reader->Read(&hints)) {
    for (v1::CellName& cell : *hints.mutable_cells()) {
      listener_.Tell(
          {std::move(*cell.mutable_table()), std::move(*cell.mutable_row()), std::move(*cell.mutable_column())});
    }
  }
  {
    MutexLock lock(&mutex_);
    stream_ = nullptr;
  }
  reader->Finish();
}

}  // namespace percolator
