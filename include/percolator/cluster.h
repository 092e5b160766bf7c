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
//     percolator://HOST:PORT     many processes around one `percolator serve`
//     bigtable:projects/P/instances/I?oracle=HOST:PORT&coord=HOST:PORT
//                                many machines: data in Bigtable, oracles and etcd beside it

#ifndef PERCOLATOR_CLUSTER_H_
#define PERCOLATOR_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/options.h"
#include "percolator/oracle.h"
#include "percolator/store.h"
#include "percolator/transaction.h"

namespace percolator {

// All methods may be called by any thread.
class Cluster {
 public:
  // kInvalidArgument: the address can't be understood. kUnavailable: what it names can't be reached.
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(std::string_view address, const ClusterOptions& options = {});

  // A cluster of the caller's own parts, which must outlive it: for tests, simulation and unusual deployments.
  static absl::StatusOr<std::unique_ptr<Cluster>> Assemble(Store* store, Oracle* oracle, Coordinator* coordinator,
                                                           const ClusterOptions& options = {});

  // Closes, if Close was not called.
  ~Cluster();

  absl::Status CreateTable(std::string_view name, const TableSchema& schema = {});
  absl::Status DropTable(std::string_view name);
  absl::StatusOr<std::vector<std::string>> ListTables();

  // Runs `fn` in a transaction and commits it. On a conflict runs *fn* again, in a new transaction on a new snapshot,
  // after a while; so fn must have no effects but through `t`. If fn returns an error other than kAborted, nothing is
  // committed and the error is returned. Returns the commit timestamp.
  absl::StatusOr<Timestamp> Transact(const std::function<absl::Status(ReadWrite& t)>& fn,
                                     const TransactOptions& options = {});

  // A view of everything committed before this call.
  absl::StatusOr<Snapshot> Now();
  // A view of the state at `ts`. kOutOfRange: so old that garbage collection may have been there.
  absl::StatusOr<Snapshot> AsOf(Timestamp ts);

  // The one true answer to a commit with unknown outcome. Decides it, if nobody did yet. kUnavailable: try again.
  absl::StatusOr<CommitResult> Resolve(const CommitResult& unknown);

  // Collects garbage now; returns the safe point: everything older is gone but the newest version of each cell.
  absl::StatusOr<Timestamp> CollectGarbage();

  // Finishes what is under way in the background and releases everything.
  // REQUIRES: no transaction, snapshot or worker of this cluster is in use.
  absl::Status Close();

 private:
  friend class Transaction;
  friend class Worker;
  class Impl;
  explicit Cluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_H_
