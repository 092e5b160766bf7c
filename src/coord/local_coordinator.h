// SPDX-License-Identifier: Apache-2.0

// The coordinator of one process, in memory.
//
// Used by a process that opens the store itself (`rocksdb:` and `memory:` addresses), and by tests and the simulator, where
// several clusters share a coordinator.
//
// SESSIONS  A session lives until it is destroyed or the process dies. Its id is a timestamp of the oracle, so no id is used
//           twice, not even by a later process on the same data (O1). So a lock of an earlier process names a dead session.
//           session_table.h has the other rules.
// HINTS     SendHint calls the listener before it returns. Without a listener the hint is lost. SetHintListener waits for
//           calls in progress of the former listener, so a listener must not call it.

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
  // REQUIRES: both outlive this object, which outlives its sessions.
  explicit LocalCoordinator(Oracle* oracle, Runtime* runtime = Runtime::Real());
  ~LocalCoordinator() override;

  // Returns the error of the oracle if it cannot draw an id.
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
