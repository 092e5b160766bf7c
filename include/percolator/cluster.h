// Cluster: the way in.
//
//     auto cluster = Cluster::Open("rocksdb:/var/lib/accounts");
//     auto committed = (*cluster)->Transact([](ReadWrite& t) -> absl::Status {
//       auto bob = t.Get("accounts", "Bob", "bal");
//       if (!bob.ok()) return bob.status();
//       return t.Set("accounts", "Bob", "bal", Minus(*bob, 7));
//     });
//
// The address decides what runs where; the program stays the same:
//
//     rocksdb:DIR                one process: store, oracle and coordinator in it, data in DIR
//     memory:                    the same, without a disk: for tests
//     percolator://HOST:PORT     many processes around one `percolator serve`; with TLS:
//                                percolator://HOST:PORT?ca=FILE, and if the server wants to know its clients &cert=FILE&key=FILE
//     bigtable:projects/P/instances/I?oracle=HOST:PORT,HOST:PORT&coord=HOST:PORT
//                                many machines: data in Bigtable, one or more `percolator oracle` and etcd beside it;
//                                &app_profile=NAME; &endpoint=https://HOST:PORT for another server than Google's, http:// for
//                                plain text, and without either plain text on this machine; &ca=FILE, which may hold
//                                several authorities, &cert=FILE and &key=FILE are for the oracles, for etcd and for an
//                                endpoint with https://
//
// LIFETIME  A Cluster is a handle. Snapshots, transactions, scans, workers, loaders and inspectors are handles of the same
//           cluster. They may be destroyed in any order, before or after Close. The cluster closes when Close is called, or
//           when the last handle is destroyed. After that, every call on a handle returns kFailedPrecondition.
// FORK      A cluster can be used only in the process that opened it. In a child of fork() every call on a handle returns
//           kFailedPrecondition, and destroying handles there does nothing. Fork before opening, or open again in the child.

#ifndef PERCOLATOR_CLUSTER_H_
#define PERCOLATOR_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/oracle.h"
#include "percolator/store.h"
#include "percolator/transaction.h"

namespace percolator {

class Runtime;

struct ClusterParts {
  Store* store = nullptr;
  Oracle* oracle = nullptr;
  Coordinator* coordinator = nullptr;
  Runtime* runtime = nullptr;  // null: threads and the clock of this machine
};

// What a cluster has done since it was opened.
struct ClusterStats {
  uint64_t commits = 0;
  uint64_t conflicts = 0;         // commits that lost against another transaction
  uint64_t unknown_outcomes = 0;  // commits of which it was not known whether they happened
  uint64_t store_reads = 0;       // requests to read, to the store
  uint64_t prefetched = 0;        // cells read because they were predicted to be read
  uint64_t prefetches_used = 0;   // and were
  uint64_t locks_met = 0;         // locks of others in the way
  uint64_t rolled_forward = 0;    // and finished for them
  uint64_t rolled_back = 0;       // and undone for them
  uint64_t versions_collected = 0;
};

// Thread-safe.
class Cluster {
 public:
  // kInvalidArgument: the address or an option can't be understood. kUnavailable: what it names can't be reached. Of a folder:
  // kFailedPrecondition: another process has it open, its format is newer, its oracle's file is missing, or it is not a store's;
  // kNotFound: it does not exist, and RocksStoreOptions::create_if_missing is off; kResourceExhausted: the disk is full; kDataLoss:
  // it can't be read.
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(std::string_view address, const ClusterOptions& options = {});

  // Returns a cluster of the caller's own parts: for tests, simulation and unusual deployments. Close does not close the
  // store. REQUIRES: the parts outlive Close, or, if that is not called, the last handle.
  static absl::StatusOr<std::unique_ptr<Cluster>> Assemble(const ClusterParts& parts,
                                                           const ClusterOptions& options = {});

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Creates a table. EnsureTable returns OK if the table exists with this schema, and kFailedPrecondition if it exists with
  // another one.
  absl::Status CreateTable(std::string_view name, const TableSchema& schema = {}) const;
  absl::Status EnsureTable(std::string_view name, const TableSchema& schema = {}) const;
  // REQUIRES: no transaction writes to the table. One that commits to it and to others at this moment may lose its writes
  // to the others.
  absl::Status DropTable(std::string_view name) const;
  absl::StatusOr<std::vector<std::string>> ListTables() const;

  // Runs `fn` in a transaction and commits it. On a conflict, waits and runs `fn` again in a new transaction on a new
  // snapshot; so `fn` must have no side effects except through `t`. If `fn` returns an error other than kAborted, nothing is
  // committed and the error is returned. Returns the commit timestamp; zero if `fn` wrote nothing. kAborted: conflicts
  // persisted until attempts or time ran out. kUnknown: it may have committed, and `fn` is not run again; ask with
  // Resolve(*UnknownCommitOf(status)).
  absl::StatusOr<Timestamp> Transact(const std::function<absl::Status(ReadWrite& t)>& fn,
                                     const TransactOptions& options = {}) const;

  // A view of everything committed before this call.
  absl::StatusOr<Snapshot> Now() const;
  // A view of the state at `ts`. kOutOfRange: so old that garbage collection may have been there.
  absl::StatusOr<Snapshot> AsOf(Timestamp ts) const;

  // The one true answer to a commit with unknown outcome. Decides it, if nobody did yet. kUnavailable: try again.
  // kOutOfRange: it is so old that garbage collection has taken the answer. kNotFound: the table of its primary is dropped.
  absl::StatusOr<CommitResult> Resolve(const CommitResult& unknown) const;

  // Counts the cells that have notifications, up to `most`.
  absl::StatusOr<Backlog> NotificationBacklog(size_t most = 1'000'000) const;

  // Collects garbage now; returns the safe point: everything older is gone but the newest version of each cell.
  absl::StatusOr<Timestamp> CollectGarbage() const;

  ClusterStats stats() const;

  // Stops the workers and loaders of this cluster, waits for calls in progress, completes background commits and releases
  // everything: when Close returns, the folder can be opened again. Further calls on any handle return kFailedPrecondition.
  // Calling Close again returns the same status. Returns kFailedPrecondition, and does nothing, if called by an observer or
  // a load function. A commit in progress runs to its outcome; a read that waits for a lock ends.
  absl::Status Close() const;

  // Implementation detail.
  const std::shared_ptr<internal::Engine>& engine() const { return engine_; }
  explicit Cluster(std::shared_ptr<internal::Engine> engine) : engine_(std::move(engine)) {}

 private:
  std::shared_ptr<internal::Engine> engine_;  // never null
};

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_H_
