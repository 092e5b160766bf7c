// The oracle of a process that shares the office with others: of all that have the same etcd, one leads and hands out
// timestamps.
//
// THE RECORD  One key of etcd, the prefix and "oracle" (percolator/oracle by default), holds all that must outlast a leader:
//
//                 BOUND LEASE INCARNATION NAME     5934000000000 2000000 93f1c07ab2e411d5 10.0.0.7:7821
//
//             the bound below which timestamps were handed out, for how many microseconds the leader may take itself for
//             the leader after it has written, which process that is, and what people call it. An incarnation of 0: nobody
//             leads. Every write is a transaction that compares the revision of the key with the one its writer knows, so
//             the writes form a chain, and whoever was overtaken can't write any more.
// LEADING     The leader writes the record every quarter of the lease, and each time raises the bound. It answers only until
//             `lease` after the moment BEFORE it sent the last write that succeeded.
// FOLLOWING   The others read the record. One that has seen the same revision for 5/4 of the lease, since AFTER it first read
//             it, or that finds that nobody leads, writes itself into it, and begins at the bound it found.
// DAMAGE      The record may be deleted, and one from a backup put in its place. Who finds none, or one whose bound is lower
//             than it has seen, waits for 5/4 of the longest lease it knows before it writes, though nobody seems to lead:
//             a leader that has not noticed yet may still answer. And whoever takes over begins at the window above the
//             clock at least, which is as far as a leader before it had come: unless its timestamps had left the clock
//             behind, because that was set back, because of more than a million requests a second, or because the lead
//             had changed several times within the window. An oracle that is started after the damage, and finds that
//             nobody leads, can't know of a leader that still answers.
//
// Why that keeps O1 to O4 (docs/invariants.md):
//
// O2, O3  A leader hands out nothing at or above the bound of a write that it knows to have succeeded, and a new one begins
//         at the bound of the write before its own: at or above everything that was handed out before.
// O1      So timestamps are unique, and the new leader's are greater than the old one's.
// O4      What remains is that the old leader, stopped and going on again, with room left below its bound, gives
//         somebody a timestamp after a greater one of the new leader was seen. Let it have sent its last successful
//         write at s. The new leader read that write after s, waited for more than the lease, and only then wrote; so
//         every answer of the new leader is after s + lease. The old leader looks at the clock when a request has
//         arrived, and answers it only if it is before s + lease: then the request was made before the new leader's
//         first answer, and O1 asks nothing of the two. It does not matter when the answer is sent or arrives: it may be
//         stopped right after it has looked.
//         An old leader whose lease is over may lead again by writing the record. If that succeeds, nobody else has led.
// CLOCKS  Only how long the lease takes is measured, on both sides with a clock that nobody can set and that goes on while
//         the machine sleeps (Clock::BootMicros); the rates of two machines may differ by a quarter. It would be wrong on
//         a virtual machine that is stopped together with that clock. The time of day is only where timestamps come from:
//         set back, they go on from the last, at half the pace (next_timestamps.h); set forward, they jump with it.
//
// SPACE       etcd keeps what every key has ever been until it is told to forget, and takes no more writes when it is full
//             (2 GiB, by default): then nobody could lead. Hints, in the same etcd, are written all the time. So the leader
//             tells etcd once in `history` to forget what was before the last time. That is for all keys: who shares
//             the etcd and reads how keys were, or watches them from an old revision on, finds no more than that.
//
// etcd's own leases are not used here. etcd decides by its members' clocks that a lease is over, and some of its versions,
// Debian's among them, may take back a lease that is being renewed when a member is slow (etcd-io/etcd#12528, #15247). Here
// etcd has to do no more than to order the writes of one key. And a lease may be shorter than a second.

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
  std::string name;  // of this process, for people: who leads
  Duration lease = std::chrono::seconds(2);
  // The bound is raised to so much above the clock, or above the last timestamp.
  Duration window = std::chrono::seconds(3);
  // For how long etcd remembers at least how its keys were. Zero: until somebody else makes it forget.
  Duration history = std::chrono::minutes(1);
  Clock* clock = Clock::Real();
  // Called by the oracle's own thread when another one leads than before: its name, and whether it is this one. Empty:
  // nobody leads.
  std::function<void(const std::string& name, bool is_self)> on_leader;
};

// An oracle that hands out timestamps when it is its turn to lead.
class ElectedOracle : public Oracle {
 public:
  // Gives up the lead for good, so that another need not wait; from then on GetTimestamps is kUnavailable. The destructor
  // does the same.
  virtual void Resign() = 0;
};

// Begins to follow, and leads when it is its turn; both also when etcd can be reached only later.
//
// GetTimestamps never waits for etcd. kUnavailable: this one does not lead (the text names who does), is not certain that it
// still does, or needs a higher bound first. kOutOfRange: the last timestamp is reached.
absl::StatusOr<std::unique_ptr<ElectedOracle>> OpenEtcdOracle(const EtcdOracleOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_ETCD_ETCD_ORACLE_H_
