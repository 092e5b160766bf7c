// SPDX-License-Identifier: Apache-2.0

// Coordinator: liveness of processes, election of leaders, claims of rows, and hints.
//
// It takes the roles of Chubby and of the lightweight lock service in the paper. Safety never
// depends on it: a wrong answer about a session costs an aborted transaction, a lost claim costs
// duplicate work, and a lost hint costs milliseconds.
//
// Implementations: in process; in `percolator serve`, for all processes around it; on etcd leases.

#ifndef PERCOLATOR_SPI_COORDINATOR_H_
#define PERCOLATOR_SPI_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/oracle.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator {

// The liveness token of a process. It expires some seconds after the process has died or cannot be
// reached.
class Session {
 public:
  // Ends the session immediately, so that others need not wait for it to expire.
  virtual ~Session() = default;

  virtual SessionId id() const = 0;
  // Returns false once the session may have been declared dead. Others may then clean up its locks.
  virtual bool alive() const = 0;
  // Reports the oldest snapshot that this process reads. Garbage collection keeps what it needs.
  // Zero: no snapshot.
  virtual absl::Status ReportOldestSnapshot(Timestamp oldest) = 0;
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Opens a session for this process and keeps it alive until it is destroyed.
  virtual absl::StatusOr<std::unique_ptr<Session>> OpenSession() = 0;
  // Returns whether the session exists, as far as the coordinator knows.
  virtual absl::StatusOr<bool> IsAlive(SessionId session) = 0;
  // Returns the oldest snapshot that any session reports, or Infinity if none does.
  virtual absl::StatusOr<Timestamp> OldestSnapshot() = 0;

  // Makes the session leader of `role` if there is no leader. Returns true if the session leads,
  // which it does until it ends.
  virtual absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) = 0;

  // Claims a row for the session, which advises others to look for work elsewhere. Returns false if
  // another session holds the claim.
  virtual absl::StatusOr<bool> Claim(std::string_view table, std::string_view row,
                                     const Session& session) = 0;
  virtual absl::Status Release(std::string_view table, std::string_view row,
                               const Session& session) = 0;

  // Send and receive hints: a cell has changed and waits for its observers. Hints may be lost,
  // duplicated or late.
  virtual void SendHint(const CellName& cell) = 0;
  using HintListener = std::function<void(const CellName& cell)>;
  // There is one listener; a second call replaces it, and null removes it. On return, calls of the
  // previous listener have ended. Must not be called by a listener.
  virtual void SetHintListener(HintListener listener) = 0;
};

// Returns the coordinator of a single process. It draws session ids from `oracle`, which must
// outlive it.
std::unique_ptr<Coordinator> NewLocalCoordinator(Oracle* oracle);

}  // namespace percolator

#endif  // PERCOLATOR_SPI_COORDINATOR_H_
