// The coordinator of one process: everything in memory.
//
// It serves the process that holds the store itself (`rocksdb:` and `memory:` addresses), and tests and the simulator,
// where several clusters share one.
//
// SESSIONS  A session lives until it is destroyed; when the process dies, all are gone with the coordinator. Its id is a
//           timestamp of the oracle, so it is never used twice, not even by the coordinator of the next process on the
//           same data (O1). A lock that names a session of an earlier process therefore names a dead one.
//           What else there is to say of sessions: session_table.h.
// HINTS     Are handed to the listener by the thread that sends them, before SendHint returns. Without a listener they
//           are lost. Setting a listener takes the place of the one before, waits for calls of that one under way, and
//           from then on it is not called any more; so it must not be done from within a listener.

#ifndef PERCOLATOR_COORD_LOCAL_COORDINATOR_H_
#define PERCOLATOR_COORD_LOCAL_COORDINATOR_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/runtime.h"
#include "src/coord/listener_slot.h"
#include "src/coord/session_table.h"

namespace percolator {

class LocalCoordinator : public Coordinator {
 public:
  // Both must outlive this, and this the sessions it opens.
  explicit LocalCoordinator(Oracle* oracle, Runtime* runtime = Runtime::Real());
  ~LocalCoordinator() override;

  // The oracle's error, if it gives no id.
  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override;
  absl::StatusOr<bool> IsAlive(SessionId session) override;
  absl::StatusOr<Timestamp> OldestSnapshot() override;

  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override;

  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override;
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override;

  void SendHint(const CellName& cell) override;
  void SetHintListener(HintListener listener) override;

 private:
  class LocalSession;

  Oracle* const oracle_;
  SessionTable sessions_;
  ListenerSlot listener_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_LOCAL_COORDINATOR_H_
