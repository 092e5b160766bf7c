// Coordination on the wire: percolator.v1.Coordination, for the processes around one server.
//
// Everything is in memory. A server that is started anew knows no sessions; they come back with their next KeepAlive, under
// the same id. Until then others may take them for dead, which costs them transactions and no more (percolator/spi/coordinator.h).
//
// HINTS  Are passed on to all who listen, except to whom they came from. A listener that does not take them fast enough
//        loses the oldest.
// LIMITS Sessions and listeners: `most_sessions` of each; one more is UNAVAILABLE, also one that begins to live again. What a
//        session holds: session_table.h. Hints, in one request and waiting, and names: below.

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
  static constexpr int kHintsAtOnce = 10'000;             // in one request, more are INVALID_ARGUMENT
  static constexpr size_t kHintBytes = size_t{64} << 20;  // that wait for all listeners, then some are lost
  static constexpr size_t kNameBytes = size_t{64} << 10;  // of a role, or a table and a row that are claimed

  // Session ids are drawn from the oracle, by the executor. Both must outlive this.
  CoordinationService(Oracle* oracle, Executor* executor, Duration session_ttl, size_t most_sessions);
  ~CoordinationService() override;

  // Ends the streams of those who listen: a server that stops would wait for them.
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
  // Notes that the session was heard of. kUnavailable: it is a new one, and there are too many.
  absl::Status Hear(SessionId session, Timestamp oldest);
  // Ends the sessions that were silent for too long.
  void Expire();

  Oracle* const oracle_;
  Executor* const executor_;
  const Duration session_ttl_;
  const size_t most_sessions_;
  Runtime* const runtime_ = Runtime::Real();
  SessionTable sessions_;
  std::atomic<size_t> hint_bytes_{0};  // that wait for all listeners, or are being written to them

  Mutex mutex_;
  // When each session was heard of last, on the clock of the runtime.
  absl::flat_hash_map<SessionId, Duration> heard_ ABSL_GUARDED_BY(mutex_);
  bool listening_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_COORDINATION_SERVICE_H_
