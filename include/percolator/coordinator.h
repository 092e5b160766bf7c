// Coordinator: who is alive, who leads, who is working where.
//
// It plays the parts of Chubby and of the lightweight lock service in the paper. Safety never depends on it: a wrong word
// about a session costs an aborted transaction, a lost claim costs work done twice, a lost hint costs milliseconds.
//
// Implementations: in process; in `percolator serve`, for all processes around it; on etcd leases.

#ifndef PERCOLATOR_COORDINATOR_H_
#define PERCOLATOR_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/oracle.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator {

// Names a session; written into locks. Never used twice.
using SessionId = uint64_t;

// The liveness token of a process: valid while the process lives and can be heard, gone some seconds later.
class Session {
 public:
  // Ends the session at once: others need not wait for it to expire.
  virtual ~Session() = default;

  virtual SessionId id() const = 0;
  // False once the session may have been declared dead. Locks it owns may then be cleaned up by others.
  virtual bool alive() const = 0;
  // Tells which snapshots this process still reads: garbage collection keeps what they need. Zero: none.
  virtual absl::Status ReportOldestSnapshot(Timestamp oldest) = 0;
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Opens a session for this process and keeps it alive until it is destroyed.
  virtual absl::StatusOr<std::unique_ptr<Session>> OpenSession() = 0;
  // Whether the session exists, as far as can be known.
  virtual absl::StatusOr<bool> IsAlive(SessionId session) = 0;
  // The smallest timestamp that any session reports to need; Infinity if none does.
  virtual absl::StatusOr<Timestamp> OldestSnapshot() = 0;

  // Makes the session leader of `role` if there is no leader. True: it leads until the session ends.
  virtual absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) = 0;

  // Claims a row for the session: advice to others to look for work elsewhere. False: another session has it.
  virtual absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) = 0;
  virtual absl::Status Release(std::string_view table, std::string_view row, const Session& session) = 0;

  // Tells workers elsewhere that a cell has become dirty, and how to be told. Hints may be lost, doubled or late.
  virtual void SendHint(const CellName& cell) = 0;
  using HintListener = std::function<void(const CellName& cell)>;
  virtual void SetHintListener(HintListener listener) = 0;
};

// The coordinator of one process, which draws the ids of its sessions from `oracle`. That must outlive it.
std::unique_ptr<Coordinator> NewLocalCoordinator(Oracle* oracle);

}  // namespace percolator

#endif  // PERCOLATOR_COORDINATOR_H_
