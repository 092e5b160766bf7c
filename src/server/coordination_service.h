// SPDX-License-Identifier: Apache-2.0

// The gRPC service percolator.v1.Coordination, for the clients of one server.
//
// All state is in memory. A restarted server knows no sessions; a session lives again, with the same id, after its next
// KeepAlive. Until then other clients treat it as dead, which costs aborted transactions and nothing else
// (percolator/spi/coordinator.h).
//
// HINTS  The server passes hints to all listeners except those of the sender. A listener that reads too slowly loses the oldest
//        hints. It passes at most kMaxHintsPassed hints of a request, summed over the listeners: hints are advice.
// LIMITS There are at most `max_sessions` sessions, and as many listeners. A further one, also a session that would live again,
//        fails with UNAVAILABLE. session_table.h limits roles and claims; the constants below limit hints and names.

#ifndef PERCOLATOR_SERVER_COORDINATION_SERVICE_H_
#define PERCOLATOR_SERVER_COORDINATION_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"
#include "src/coord/session_table.h"
#include "src/server/executor.h"
#include "src/server/requests.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

class CoordinationService final : public LimitedService<v1::Coordination::CallbackService> {
 public:
  static constexpr int kMaxHints = 10'000;                   // per request; more return INVALID_ARGUMENT
  static constexpr size_t kMaxHintsPassed = 50'000;          // of one request, summed over the listeners
  static constexpr size_t kMaxHintBytes = size_t{64} << 20;  // waiting for all listeners; beyond that, hints are lost
  static constexpr size_t kMaxNameBytes = size_t{64} << 10;  // per role, and per table and row of a claim

  // Draws session ids from `oracle` on the executor. REQUIRES: both outlive this object.
  CoordinationService(Oracle* oracle, Executor* executor, Duration session_ttl, size_t max_sessions);
  ~CoordinationService() override;

  // Ends the streams of all listeners, for which a stopping server would wait.
  void StopListening();

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* OpenSession(Context* context, const v1::OpenSessionRequest* request,
                       v1::OpenSessionResponse* response) override;
  Reactor* KeepAlive(Context* context, const v1::KeepAliveRequest* request, v1::KeepAliveResponse* response) override;
  Reactor* EndSession(Context* context, const v1::EndSessionRequest* request,
                      v1::EndSessionResponse* response) override;
  Reactor* IsAlive(Context* context, const v1::IsAliveRequest* request, v1::IsAliveResponse* response) override;
  Reactor* OldestSnapshot(Context* context, const v1::OldestSnapshotRequest* request,
                          v1::OldestSnapshotResponse* response) override;
  Reactor* Campaign(Context* context, const v1::CampaignRequest* request, v1::CampaignResponse* response) override;
  Reactor* Claim(Context* context, const v1::ClaimRequest* request, v1::ClaimResponse* response) override;
  Reactor* Release(Context* context, const v1::ReleaseRequest* request, v1::ReleaseResponse* response) override;
  Reactor* SendHints(Context* context, const v1::SendHintsRequest* request, v1::SendHintsResponse* response) override;
  grpc::ServerWriteReactor<v1::Hints>* Listen(Context* context, const v1::ListenRequest* request) override;

 private:
  class Listener;

  uint32_t TtlMs() const;
  // Renews the session. Returns Unavailable if it is new and there are too many sessions.
  absl::Status Renew(SessionId session, Timestamp oldest);
  // Ends the sessions that were not renewed for session_ttl_, unless it did so a moment ago.
  void Expire();
  // Passes hints on to the listeners.
  void PassOn(const v1::SendHintsRequest& hints);

  Oracle* const oracle_;
  Executor* const executor_;
  const Duration session_ttl_;
  const size_t max_sessions_;
  Runtime* const runtime_ = Runtime::Real();
  SessionTable sessions_;
  std::atomic<size_t> hint_bytes_{0};  // the size of the hints that wait for listeners or are being written

  Mutex mutex_;
  // The last renewal of each session, a time of Runtime::Elapsed.
  absl::flat_hash_map<SessionId, Duration> renewed_ ABSL_GUARDED_BY(mutex_);
  Duration next_expiry_ ABSL_GUARDED_BY(mutex_){};
  bool listening_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_COORDINATION_SERVICE_H_
