// SPDX-License-Identifier: Apache-2.0

#include "src/server/coordination_service.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/server/calls.h"
#include "src/wire/status.h"

namespace percolator {
namespace {

// The limits of the hints that wait for one listener. Any client may send a hint, so its size is limited too.
constexpr int kMaxHintsWaiting = 10'000;
constexpr size_t kMaxBytesWaiting = size_t{1} << 20;
// The limits of requests.
constexpr size_t kNumberRequestBytes = 1 << 10;
constexpr size_t kNameRequestBytes = 2 * CoordinationService::kMaxNameBytes;
constexpr size_t kHintsRequestBytes = size_t{8} << 20;

// Every request first ends dead sessions, and there may be many sessions.
constexpr Duration kMinExpiryPeriod = std::chrono::milliseconds(100);

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

absl::Status TooMany(std::string_view what, size_t limit) {
  return absl::UnavailableError(StrCat("the server is too busy: limit of ", limit, " ", what, " reached"));
}

absl::Status CheckName(size_t bytes) {
  if (bytes <= CoordinationService::kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the name of a role or row has ", bytes, " bytes; the limit is ", CoordinationService::kMaxNameBytes));
}

}  // namespace

// The stream of one listener. gRPC calls it from its own threads. It keeps itself alive until gRPC reports that the stream is
// done.
class CoordinationService::Listener final : public grpc::ServerWriteReactor<v1::Hints>,
                                            public std::enable_shared_from_this<Listener> {
 public:
  Listener(CoordinationService* service, uint64_t sender) : service_(service), sender_(sender) {}

  // Writes the first, empty message, which means that the listener is registered. Tell and End may be called before this.
  void Begin() {
    MutexLock lock(&mutex_);
    self_ = shared_from_this();
    if (!ended_) StartWrite(&written_);
  }

  uint64_t sender() const { return sender_; }

  // Queues the first `count` hints, whose sizes are in `bytes`.
  void Tell(const v1::SendHintsRequest& hints, const std::vector<size_t>& bytes, size_t count) {
    MutexLock lock(&mutex_);
    if (ended_) return;
    for (size_t i = 0; i < count; ++i) AddWaiting(hints.cells(static_cast<int>(i)), bytes[i]);
    if (!writing_ && waiting_.cells_size() > 0) WriteNext();
  }

  void End(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    Finish(ToGrpc(status));
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    written_ = v1::Hints();
    service_->hint_bytes_ -= std::exchange(written_bytes_, 0);
    if (ended_) return;
    if (!ok) {
      ended_ = true;
      Finish(grpc::Status::CANCELLED);
    } else if (waiting_.cells_size() > 0) {
      WriteNext();
    }
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    std::shared_ptr<Listener> self;
    {
      MutexLock lock(&mutex_);
      self = std::move(self_);
      service_->hint_bytes_ -= std::exchange(waiting_bytes_, 0) + std::exchange(written_bytes_, 0);
    }
    MutexLock lock(&service_->mutex_);
    service_->listeners_.erase(self);
  }

 private:
  // Replaces messages instead of clearing them, because a cleared message keeps the memory of its largest hints.
  void AddWaiting(const v1::CellName& cell, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (bytes > kMaxBytesWaiting) return;  // no cell has such a long name
    if (waiting_.cells_size() == kMaxHintsWaiting || waiting_bytes_ + bytes > kMaxBytesWaiting ||
        service_->hint_bytes_ + bytes > kMaxHintBytes) {
      waiting_ = v1::Hints();
      service_->hint_bytes_ -= std::exchange(waiting_bytes_, 0);
    }
    if (service_->hint_bytes_ + bytes > kMaxHintBytes) return;  // the hints of other listeners use up the limit
    waiting_bytes_ += bytes;
    service_->hint_bytes_ += bytes;
    *waiting_.add_cells() = cell;
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    writing_ = true;
    written_ = std::exchange(waiting_, v1::Hints());
    written_bytes_ = std::exchange(waiting_bytes_, 0);
    StartWrite(&written_);
  }

  CoordinationService* const service_;
  const uint64_t sender_;

  Mutex mutex_;
  std::shared_ptr<Listener> self_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;  // the first message, before Begin
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  v1::Hints waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::Hints written_ ABSL_GUARDED_BY(mutex_);  // used by gRPC while `writing_`
  size_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

CoordinationService::CoordinationService(Oracle* oracle, Executor* executor, Duration session_ttl, size_t max_sessions)
    : oracle_(oracle), executor_(executor), session_ttl_(session_ttl), max_sessions_(max_sessions) {
  RequestMemory* const memory = executor->requests();
  LimitUnary(0, kNumberRequestBytes, memory, &CoordinationService::OpenSession);
  LimitUnary(1, kNumberRequestBytes, memory, &CoordinationService::KeepAlive);
  LimitUnary(2, kNumberRequestBytes, memory, &CoordinationService::EndSession);
  LimitUnary(3, kNumberRequestBytes, memory, &CoordinationService::IsAlive);
  LimitUnary(4, kNumberRequestBytes, memory, &CoordinationService::OldestSnapshot);
  LimitUnary(5, kNameRequestBytes, memory, &CoordinationService::Campaign);
  LimitUnary(6, kNameRequestBytes, memory, &CoordinationService::Claim);
  LimitUnary(7, kNameRequestBytes, memory, &CoordinationService::Release);
  LimitUnary(8, kHintsRequestBytes, memory, &CoordinationService::SendHints);
  LimitStream(9, kNumberRequestBytes, memory, &CoordinationService::Listen);
}

CoordinationService::~CoordinationService() = default;

void CoordinationService::StopListening() {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    MutexLock lock(&mutex_);
    listening_ended_ = true;
    listeners.assign(listeners_.begin(), listeners_.end());
  }
  for (const std::shared_ptr<Listener>& listener : listeners) listener->End(Stopping());
}

uint32_t CoordinationService::TtlMs() const {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(session_ttl_).count());
}

absl::Status CoordinationService::Renew(SessionId session, Timestamp oldest) {
  MutexLock lock(&mutex_);
  if (renewed_.size() >= max_sessions_ && !renewed_.contains(session)) return TooMany("sessions", max_sessions_);
  renewed_[session] = runtime_->Elapsed();
  sessions_.Report(session, oldest);
  return absl::OkStatus();
}

void CoordinationService::Expire() {
  constexpr int kFractionOfTtl = 10;
  MutexLock lock(&mutex_);
  const Duration now = runtime_->Elapsed();
  if (now < next_expiry_) return;
  next_expiry_ = now + std::min<Duration>(kMinExpiryPeriod, session_ttl_ / kFractionOfTtl);
  absl::erase_if(renewed_, [&](const auto& renewed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (now - renewed.second <= session_ttl_) return false;
    sessions_.End(renewed.first);
    return true;
  });
}

CoordinationService::Reactor* CoordinationService::OpenSession(Context* context,
                                                               const v1::OpenSessionRequest* /*request*/,
                                                               v1::OpenSessionResponse* response) {
  // On the executor, because an oracle may have to wait for the disk.
  return RunUnary(context, executor_, response, [=, this] {
    PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp drawn, oracle_->GetTimestamp());
    Expire();  // makes room for the new session
    PERCOLATOR_RETURN_IF_ERROR(Renew(drawn.value(), Timestamp()));
    response->set_session(drawn.value());
    response->set_ttl_ms(TtlMs());
    return absl::OkStatus();
  });
}

CoordinationService::Reactor* CoordinationService::KeepAlive(Context* context, const v1::KeepAliveRequest* request,
                                                             v1::KeepAliveResponse* response) {
  Expire();  // if this session has expired, it loses its roles and claims first
  response->set_ttl_ms(TtlMs());
  return AnswerUnary(context, Renew(request->session(), Timestamp(request->oldest_snapshot())));
}

CoordinationService::Reactor* CoordinationService::EndSession(Context* context, const v1::EndSessionRequest* request,
                                                              v1::EndSessionResponse* /*response*/) {
  MutexLock lock(&mutex_);
  renewed_.erase(request->session());
  sessions_.End(request->session());
  return AnswerUnary(context, absl::OkStatus());
}

CoordinationService::Reactor* CoordinationService::IsAlive(Context* context, const v1::IsAliveRequest* request,
                                                           v1::IsAliveResponse* response) {
  Expire();
  response->set_alive(sessions_.Exists(request->session()));
  return AnswerUnary(context, absl::OkStatus());
}

CoordinationService::Reactor* CoordinationService::OldestSnapshot(Context* context,
                                                                  const v1::OldestSnapshotRequest* /*request*/,
                                                                  v1::OldestSnapshotResponse* response) {
  Expire();
  const Timestamp oldest = sessions_.OldestSnapshot();
  if (oldest != Timestamp::Infinity()) response->set_timestamp(oldest.value());
  return AnswerUnary(context, absl::OkStatus());
}

CoordinationService::Reactor* CoordinationService::Campaign(Context* context, const v1::CampaignRequest* request,
                                                            v1::CampaignResponse* response) {
  if (absl::Status s = CheckName(request->role().size()); !s.ok()) return AnswerUnary(context, s);
  Expire();
  const absl::StatusOr<bool> leads = sessions_.Campaign(request->role(), request->session());
  response->set_leads(leads.value_or(false));
  return AnswerUnary(context, leads.status());
}

CoordinationService::Reactor* CoordinationService::Claim(Context* context, const v1::ClaimRequest* request,
                                                         v1::ClaimResponse* response) {
  const absl::Status checked = CheckName(request->table().size() + request->row().size());
  if (!checked.ok()) return AnswerUnary(context, checked);
  Expire();
  const absl::StatusOr<bool> granted = sessions_.Claim(request->table(), request->row(), request->session());
  response->set_granted(granted.value_or(false));
  return AnswerUnary(context, granted.status());
}

CoordinationService::Reactor* CoordinationService::Release(Context* context, const v1::ReleaseRequest* request,
                                                           v1::ReleaseResponse* /*response*/) {
  sessions_.Release(request->table(), request->row(), request->session());
  return AnswerUnary(context, absl::OkStatus());
}

CoordinationService::Reactor* CoordinationService::SendHints(Context* context, const v1::SendHintsRequest* request,
                                                             v1::SendHintsResponse* response) {
  if (request->cells_size() > kMaxHints) {
    return AnswerUnary(context, absl::InvalidArgumentError(StrCat("the request has ", request->cells_size(),
                                                                  " hints; the limit is ", kMaxHints)));
  }
  // By the executor: many hints for many listeners take long.
  return RunUnary(
      context, executor_, response,
      [=, this] {
        PassOn(*request);
        return absl::OkStatus();
      },
      Executor::kHeavy);
}

void CoordinationService::PassOn(const v1::SendHintsRequest& hints) {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    MutexLock lock(&mutex_);
    listeners.assign(listeners_.begin(), listeners_.end());
  }
  std::erase_if(listeners, [&](const auto& listener) { return listener->sender() == hints.sender(); });
  if (listeners.empty()) return;
  const size_t count = std::min(static_cast<size_t>(hints.cells_size()), kMaxHintsPassed / listeners.size());
  std::vector<size_t> bytes;
  for (size_t i = 0; i < count; ++i) {
    const v1::CellName& cell = hints.cells(static_cast<int>(i));
    bytes.push_back(sizeof(cell) + cell.ByteSizeLong());
  }
  for (const std::shared_ptr<Listener>& listener : listeners) listener->Tell(hints, bytes, count);
}

grpc::ServerWriteReactor<v1::Hints>* CoordinationService::Listen(Context* /*context*/,
                                                                 const v1::ListenRequest* request) {
  const auto listener = std::make_shared<Listener>(this, request->sender());
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    if (listeners_.size() >= max_sessions_) refused = TooMany("listeners", max_sessions_);
    if (listening_ended_) refused = Stopping();
    listeners_.insert(listener);
  }
  listener->Begin();
  if (!refused.ok()) listener->End(refused);
  return listener.get();
}

}  // namespace percolator
