// A coordinator on etcd: sessions are leases, leaders and claims are keys that hang on them. Each key begins with a prefix, after
// which comes (docs/format.md):
//
//     sessions/ID          the oldest snapshot that the session reports; on the session's lease
//     roles/ROLE           the session that leads; on its lease
//     claims/TABLE ROW     the session that has the row; on its lease
//     hints/SENDER         the hints that a process sent last; on a lease of its own
//
// SESSIONS  The number of a session's lease is its id, a timestamp of the oracle. etcd ends a lease that was not renewed for
//           `session_ttl`, and all keys on it. A session that was taken for dead, because the process or etcd stood still,
//           begins to live again when it can be renewed; what it led and claimed is gone.
// HINTS     Are put by a thread of their own, many at once, and lost when too many wait: a process puts 64 KiB a second at most,
//           because etcd keeps every put until it compacts, and is of no use to anybody once it is full. The oracle that
//           leads makes it compact (src/oracle/etcd/etcd_oracle.h); an etcd without one should run with
//           --auto-compaction-retention. A process with a listener watches the others' keys.
// THREADS   One for each session, one that sends hints, and one that hears them from the first listener on.

#ifndef PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_
#define PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/oracle.h"
#include "src/etcd/etcd_options.h"

namespace percolator {

// Session ids are drawn from `oracle`, which must outlive the coordinator. etcd need not be there yet.
absl::StatusOr<std::unique_ptr<Coordinator>> OpenEtcdCoordinator(const EtcdOptions& options, Oracle* oracle);

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_COORDINATOR_H_
