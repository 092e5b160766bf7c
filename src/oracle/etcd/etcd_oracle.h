// SPDX-License-Identifier: Apache-2.0

// A replicated oracle: of all processes on the same etcd, one is elected and issues timestamps.
//
// THE RECORD  One etcd key, the prefix followed by "oracle" (percolator/oracle by default), holds all state that must survive
//             a leader:
//
//                 BOUND LEASE INCARNATION NAME     5934000000000 2000000 93f1c07ab2e411d5 10.0.0.7:7821
//
//             BOUND is the bound below which timestamps were issued. LEASE is how many microseconds after a write the leader
//             may consider itself the leader. INCARNATION identifies the leading process; 0 means that no process leads.
//             NAME is the leader's name for operators. Every write is a transaction that compares the revision of the key
//             with the one that its writer knows. So the writes form a chain, and a superseded leader cannot write.
// LEADING     The leader writes the record every quarter of the lease, and raises the bound each time. It answers requests
//             only until `lease` after the moment BEFORE it sent its last successful write.
// FOLLOWING   The other processes read the record. A follower takes over by writing its own incarnation, and starts at the
//             bound that it found. It does so if the record says that no process leads, or if the revision has not changed
//             for 5/4 of the lease, counted from AFTER the follower first read it.
// DAMAGE      An operator may delete the record or restore an old one. If a follower finds no record, or a bound lower than
//             one it has seen, it waits for 5/4 of the longest lease that it knows before it writes, even if no process
//             seems to lead: a leader that has not noticed the damage may still answer. A new leader also starts at least
//             one window above the clock, which no earlier leader has passed unless its timestamps had moved ahead of the
//             clock: because the clock was set back, because of more than a million requests a second, or because the leader
//             changed several times within the window. An oracle started after the damage that finds that no process leads
//             cannot know about a leader that still answers.
//
// Why this guarantees O1 to O4 (docs/invariants.md):
//
// O2, O3  A leader issues timestamps only below the bound of a write that it knows to have succeeded. A new leader starts at
//         the bound of the write before its own, so at or above all timestamps that were issued before.
// O1      So timestamps are unique, and those of the new leader are greater than those of the old leader.
// O4      One case remains: the old leader is suspended, resumes with room below its bound, and issues a timestamp after a
//         client saw a greater one from the new leader. Let the old leader have sent its last successful write at s. The new
//         leader read that write after s, waited for more than the lease, and only then wrote; so all its answers come after
//         s + lease. The old leader reads the clock after a request has arrived, and answers only before s + lease. So the
//         request was made before the first answer of the new leader, and O1 does not order the two. The time at which the
//         answer is sent or arrives does not matter: the old leader may be suspended right after it read the clock.
//         An old leader whose lease has expired may lead again by writing the record. If that write succeeds, no other
//         process has led in the meantime.
// CLOCKS  Only the duration of the lease is measured, on both sides with a clock that cannot be set and goes on while the
//         machine sleeps (Clock::BootMicros). The rates of two machines may differ by a quarter. The measurement would be
//         wrong on a virtual machine that is suspended together with that clock. Timestamps come from the time of day: if it
//         is set back, they continue from the last one at half the pace (next_timestamps.h); if it is set forward, they
//         jump with it.
//
// SPACE       etcd keeps the history of every key until it is compacted, and refuses writes when it is full (2 GiB by
//             default). Then no process could lead. Hints are written to the same etcd all the time. So once per `history`
//             the leader compacts everything older than the previous compaction. This covers all keys: another user of the
//             etcd that reads old versions, or watches from an old revision, finds only the history since then.
//
// This oracle does not use etcd's own leases. etcd uses the clocks of its members to end a lease, and some versions,
// including Debian's, may revoke a lease that is being renewed if a member is slow (etcd-io/etcd#12528, #15247). Here etcd
// only has to order the writes of one key. And a lease may be shorter than a second.

#ifndef PERCOLATOR_ORACLE_ETCD_ETCD_ORACLE_H_
#define PERCOLATOR_ORACLE_ETCD_ETCD_ORACLE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "percolator/spi/oracle.h"
#include "src/base/clock.h"
#include "src/etcd/etcd_options.h"

namespace percolator {

struct EtcdOracleOptions {
  EtcdOptions etcd;
  // The name of this process, which operators see if it leads.
  std::string name;
  Duration lease = std::chrono::seconds(2);
  // The distance of a new bound from the clock, or from the last timestamp if that is later.
  Duration window = std::chrono::seconds(3);
  // The minimum age of the history that the leader compacts in etcd. With zero the leader does not compact.
  Duration history = std::chrono::minutes(1);
  Clock* clock = Clock::Real();
  // Called by the oracle's own thread when the leader changes, with the name of the new leader and whether it is this process.
  // The name is empty if no process leads.
  std::function<void(const std::string& name, bool is_self)> on_leader;
};

// An oracle that issues timestamps while it leads.
class ElectedOracle : public Oracle {
 public:
  // Gives up the lead permanently, so that the next leader need not wait. After that, GetTimestamps returns Unavailable. The
  // destructor does the same.
  virtual void Resign() = 0;
};

// Starts as a follower, and leads when it is elected. etcd need not be reachable yet. Returns InvalidArgument if the lease or
// the window is below 100 ms.
//
// GetTimestamps never waits for etcd. It returns Unavailable if this oracle does not lead (the text names the leader), its
// lease has expired, or it has to raise its bound first. It returns OutOfRange if the last timestamp is reached.
absl::StatusOr<std::unique_ptr<ElectedOracle>> OpenEtcdOracle(const EtcdOracleOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_ETCD_ETCD_ORACLE_H_
