// The coordinator of a server: `percolator serve`.
//
// SESSIONS  Are kept alive by a task of their own, which also tells what they report. One that was taken for dead, because
//           the process or the server stood still, begins to live again when it is heard; what it led and claimed is gone.
// HINTS     Are sent by a task of their own, many at once, and lost when too many wait. Listeners of this process are told
//           at once, by the thread that sends; those elsewhere through a stream, which is opened again when it breaks.
// THREADS   One for each session, one that sends hints, and one that hears them while there is a listener.

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
  // `timeout` is that of one request.
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

  // The tasks of the two threads.
  void SendHints();
  void HearHints();
  // Hears until the stream breaks.
  void HearOneStream();
  void StopHearing();

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

  Mutex hearing_mutex_;  // held while the thread that hears is started or ended
  bool hearing_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // to be cancelled
  std::thread hearing_thread_ ABSL_GUARDED_BY(hearing_mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_REMOTE_REMOTE_COORDINATOR_H_
