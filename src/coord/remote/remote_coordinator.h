// SPDX-License-Identifier: Apache-2.0

// A client of the coordinator in `percolator serve`.
//
// SESSIONS  Each session has a thread that sends KeepAlive requests with its oldest snapshot. A session that expired, because
//           the process or the server was suspended, lives again with the next such request, without its former roles and
//           claims.
// HINTS     A separate thread sends many hints at once; hints are dropped if too many are waiting. The sending thread calls
//           the listener of its own process at once. Hints of other processes arrive through a stream, which is opened again
//           when it breaks.
// THREADS   One per session, one that sends hints, and, while there is a listener, one that receives them.

#ifndef PERCOLATOR_COORD_REMOTE_REMOTE_COORDINATOR_H_
#define PERCOLATOR_COORD_REMOTE_REMOTE_COORDINATOR_H_

#include <memory>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/base/clock.h"
#include "src/coord/listener_slot.h"
#include "src/wire/channel.h"
#include "src/wire/proto/percolator.grpc.pb.h"

namespace percolator {

class RemoteCoordinator : public Coordinator {
 public:
  // `timeout` applies to each request.
  RemoteCoordinator(std::shared_ptr<grpc::Channel> channel, Duration timeout, Clock* clock = Clock::Real());
  ~RemoteCoordinator() override;

  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override;
  absl::StatusOr<bool> IsAlive(SessionId session) override;
  absl::StatusOr<Timestamp> OldestSnapshot() override;
  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override;
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override;
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override;
  void SendHint(const CellName& cell) override;
  void SetHintListener(HintListener listener) override;

 private:
  class RemoteSession;

  // The functions of the two threads.
  void SendHints();
  void ReceiveHints();
  // Receives hints until the stream breaks.
  void ReceiveOneStream();
  void StopReceiving();

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordination::Stub> stub_;
  const Duration timeout_;
  Clock* const clock_;
  Runtime* const runtime_ = Runtime::Real();
  const uint64_t sender_;
  ListenerSlot listener_;

  Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  v1::SendHintsRequest waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread sending_;

  Mutex receiving_mutex_;  // held while the receiving thread is started or ended
  bool receiving_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the open stream, for StopReceiving
  std::thread receiving_thread_ ABSL_GUARDED_BY(receiving_mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_REMOTE_REMOTE_COORDINATOR_H_
