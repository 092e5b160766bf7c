// SPDX-License-Identifier: Apache-2.0

// A coordinator on etcd. Sessions are leases; roles and claims are keys on these leases. Keys begin with a prefix, followed by
// (docs/format.md):
//
//     sessions/ID          the oldest snapshot that the session reports; on the session's lease
//     roles/ROLE           the session that leads; on its lease
//     claims/TABLE ROW     the session that has the row; on its lease
//     hints/SENDER         the hints that a process sent last; on a lease of its own
//
// SESSIONS  A session's id is a timestamp of the oracle, and the number of its lease. etcd ends a lease that is not renewed for
//           `session_ttl`, and deletes all keys on it. A session whose lease expired, because the process or etcd was
//           suspended, lives again once it is renewed, without its former roles and claims.
// HINTS     A separate thread puts many hints at once, and drops hints if too many are waiting. A process puts at most 64 KiB
//           per second, because etcd keeps every put until it is compacted, and refuses all writes when it is full. The leading
//           oracle compacts etcd (src/oracle/etcd/etcd_oracle.h); an etcd without such an oracle should run with
//           --auto-compaction-retention. A process with a listener watches the keys of the other processes.
// THREADS   One per session, one that sends hints, and, from the first listener on, one that receives them.

#ifndef PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_
#define PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "src/etcd/etcd_options.h"

namespace percolator {

// Draws session ids from `oracle`. etcd need not be reachable yet. REQUIRES: `oracle` outlives the coordinator.
absl::StatusOr<std::unique_ptr<Coordinator>> OpenEtcdCoordinator(const EtcdOptions& options, Oracle* oracle);

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_
