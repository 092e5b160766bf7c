// SPDX-License-Identifier: Apache-2.0

#include "src/coord/etcd/etcd_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/clock.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

// Short, because the lease expires in any case.
constexpr Duration kRevokeTimeout = std::chrono::seconds(1);

}  // namespace

std::string SessionPrefix(std::string_view prefix) { return StrCat(prefix, "sessions/"); }

std::string SessionKey(std::string_view prefix, SessionId id) { return StrCat(SessionPrefix(prefix), id); }

absl::StatusOr<std::unique_ptr<EtcdSession>> EtcdSession::Open(EtcdClient* client, const EtcdOptions& options,
                                                               SessionId id) {
  std::unique_ptr<EtcdSession> session(new EtcdSession(client, options, id));
  {
    MutexLock lock(&session->talking_);
    PERCOLATOR_RETURN_IF_ERROR(session->Establish(session->timeout_));
  }
  session->thread_ = std::thread([opened = session.get()] { opened->Run(); });
  return session;
}

EtcdSession::EtcdSession(EtcdClient* client, const EtcdOptions& options, SessionId id)
    : client_(client),
      id_(id),
      key_(SessionKey(options.prefix, id)),
      ttl_(options.session_ttl),
      timeout_(options.timeout),
      renew_timeout_(std::min(options.timeout, options.session_ttl / 3)),
      ended_(Runtime::Real()->NewWaitQueue()) {}

EtcdSession::~EtcdSession() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    ended_->WakeAll();
  }
  if (thread_.joinable()) thread_.join();
  client_->Revoke(lease(), std::min(timeout_, kRevokeTimeout)).IgnoreError();
}

bool EtcdSession::alive() const { return Clock::Real()->BootMicros() < alive_until_.load(); }

void EtcdSession::NoteLease(uint64_t sent, Duration ttl) {
  alive_until_.store(sent + static_cast<uint64_t>(ttl.count()));
}

absl::Status EtcdSession::ReportOldestSnapshot(Timestamp oldest) {
  MutexLock lock(&talking_);
  is_written_ = is_written_ && oldest == oldest_;
  oldest_ = oldest;
  if (is_written_) return absl::OkStatus();
  absl::Status status = WriteKey(timeout_);
  return absl::IsNotFound(status) ? Establish(timeout_) : status;
}

void EtcdSession::Run() {
  for (Duration pause = ttl_ / 3;;) {
    {
      MutexLock lock(&mutex_);
      if (!ending_) ended_->WaitFor(&mutex_, pause);
      if (ending_) return;
    }
    pause = Renew().ok() ? ttl_ / 3 : ttl_ / 20;
  }
}

absl::Status EtcdSession::Renew() {
  MutexLock lock(&talking_);
  const uint64_t sent = Clock::Real()->BootMicros();
  const absl::StatusOr<Duration> ttl = client_->KeepAlive(lease(), renew_timeout_);
  if (absl::IsNotFound(ttl.status())) {
    alive_until_.store(0);
    is_written_ = false;
  } else if (!ttl.ok()) {
    return ttl.status();
  }
  if (!is_written_) return Establish(renew_timeout_);
  NoteLease(sent, *ttl);
  return absl::OkStatus();
}

absl::Status EtcdSession::Establish(Duration timeout) {
  is_written_ = false;
  const uint64_t sent = Clock::Real()->BootMicros();
  PERCOLATOR_ASSIGN_OR_RETURN(const Duration ttl, client_->Grant(lease(), ttl_, timeout));
  PERCOLATOR_RETURN_IF_ERROR(WriteKey(timeout));
  NoteLease(sent, ttl);
  return absl::OkStatus();
}

// Compares the revision, so that an abandoned attempt that arrives late cannot overwrite a later one.
absl::Status EtcdSession::WriteKey(Duration timeout) {
  for (;;) {
    EtcdTxn txn;
    txn.IfModRevision(key_, revision_).ThenPut(key_, std::to_string(oldest_.value()), lease()).OtherwiseGet(key_);
    PERCOLATOR_ASSIGN_OR_RETURN(const EtcdClient::TxnResult written, client_->Commit(txn, timeout));
    if (written.succeeded) {
      revision_ = written.revision;
      is_written_ = true;
      return absl::OkStatus();
    }
    const std::optional<etcd::KeyValue>& found = written.otherwise.front();
    revision_ = found.has_value() ? found->mod_revision() : 0;
  }
}

}  // namespace percolator
