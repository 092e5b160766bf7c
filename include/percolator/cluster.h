// SPDX-License-Identifier: Apache-2.0

// Cluster: the way in.
//
//     PERCOLATOR_ASSIGN_OR_RETURN(Cluster bank, Cluster::Open("rocksdb:/var/lib/bank"));
//     PERCOLATOR_RETURN_IF_ERROR(bank.Transact([](ReadWrite& t) { t.Set(kBalance, "Bob", 10); }));
//
// The address decides where everything runs; the program stays the same:
//
//     rocksdb:DIR                in this process, with the data in DIR
//     memory:                    in this process, without a disk; for tests
//     percolator://HOST:PORT     many processes around one `percolator serve`; ?ca=FILE for TLS,
//                                &cert=FILE&key=FILE for mutual TLS
//     bigtable:projects/P/instances/I?oracle=HOST:PORT,...&coord=HOST:PORT,...
//                                many machines: data in Bigtable, with `percolator oracle` and
//                                etcd; docs/serving.md lists the other settings
//
// LIFETIME  A Cluster is a handle; copies refer to the same cluster. Snapshots, transactions,
//           scans, workers, loaders and inspectors hold such a handle too. They may be destroyed in
//           any order, before or after Close. The cluster closes when Close is called, or when the
//           last handle is destroyed. After that, every call that returns a status fails with
//           FailedPrecondition (IsClosed), except that Close returns its first status again and
//           Worker::Stop returns OK.
// FORK      A cluster can be used only in the process that opened it. In a child of fork() every
//           call that returns a status fails with FailedPrecondition; make no other calls there.
//           Destroying handles there does nothing. Fork before opening, or open again in the child.

#ifndef PERCOLATOR_CLUSTER_H_
#define PERCOLATOR_CLUSTER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/transaction.h"
#include "percolator/types.h"

namespace percolator {

// Counters since this process opened the cluster.
struct ClusterMetrics {
  uint64_t commits = 0;
  uint64_t conflicts = 0;              // commits that lost against another transaction
  uint64_t unknown_outcomes = 0;       // commits whose outcome was not known
  uint64_t store_reads = 0;            // read requests sent to the store
  uint64_t cells_prefetched = 0;       // cells read because they were predicted to be read
  uint64_t prefetched_cells_used = 0;  // prefetched cells that were later read
  uint64_t foreign_locks_found = 0;    // locks of other transactions encountered
  uint64_t rolled_forward = 0;         // foreign locks whose transaction had committed
  uint64_t rolled_back = 0;            // foreign locks whose owner was gone
  uint64_t versions_collected = 0;     // by garbage collection
};

// Notifications waiting in the whole cluster.
struct Backlog {
  size_t cells = 0;    // at most the limit of the call
  Duration oldest{0};  // age of the oldest of these
};

// Copies are cheap. Thread-safe.
class Cluster {
 public:
  // Opens the cluster at `address`. Returns InvalidArgument if the address or an option is
  // malformed, and Unavailable or DeadlineExceeded if a component cannot be reached. For `rocksdb:`
  // also returns FailedPrecondition if the directory is open already, in this process or another,
  // if its format is newer, if its oracle's file is missing, or if it holds something else;
  // NotFound if it holds no store and RocksOptions::create_if_missing is off; ResourceExhausted if
  // the disk is full; DataLoss if the store cannot be read. For `percolator://` and `bigtable:`
  // returns Unimplemented if the library was built with PERCOLATOR_SERVER=OFF.
  static absl::StatusOr<Cluster> Open(std::string_view address, const ClusterOptions& options = {});

  Cluster(const Cluster&) = default;  // a move copies: there is no cluster that was moved from
  Cluster& operator=(const Cluster&) = default;

  // Creates a table. EnsureTable returns OK if the table exists with this schema, and
  // FailedPrecondition if it exists with another one.
  absl::Status CreateTable(std::string_view name, const TableSchema& schema = {}) const;
  absl::Status EnsureTable(std::string_view name, const TableSchema& schema = {}) const;
  // Drops a table. A transaction that is committing to this table and to others may lose its writes
  // to the others.
  absl::Status DropTable(std::string_view name) const;
  // Returns the names of all tables, in order.
  absl::StatusOr<std::vector<std::string>> ListTables() const;

  // Runs `fn` in a transaction and commits it. On a conflict, backs off and runs `fn` again on a
  // new snapshot, so `fn` must have no side effects except through its argument. `fn` takes a
  // ReadWrite& and returns void, Status or StatusOr<T>. A void `fn` counts as returning the first
  // error of its reads. Transact returns the Status, or the StatusOr<T> of the attempt that
  // committed. If `fn` returns an error, that attempt is not committed: after Aborted, `fn` runs
  // again; any other error is returned. If `result` is not null, it receives the outcome of the
  // last attempt, which is kAborted if no commit was attempted, and the commit timestamp.
  //
  // Returns Aborted if conflicts persisted for max_attempts or until the timeout, and Unknown if
  // the outcome of a commit could not be determined. After Unknown, `fn` is not run again;
  // Resolve(*GetUnknownCommit(status)) settles the question.
  template <std::invocable<ReadWrite&> Fn>
  auto Transact(Fn&& fn, const TransactionOptions& options = {},
                CommitResult* result = nullptr) const;

  // Returns a snapshot of everything committed before the call.
  absl::StatusOr<Snapshot> GetSnapshot() const;
  // Returns the snapshot at `ts`. Returns OutOfRange if `ts` is older than what garbage collection
  // keeps, and InvalidArgument if it is zero or in the future.
  absl::StatusOr<Snapshot> GetSnapshotAt(Timestamp ts) const;

  // Determines the outcome of a commit that was kUnknown. If it is still undecided, rolls it back.
  // Returns OutOfRange if garbage collection has removed the answer, NotFound if the table of its
  // primary was dropped, and Unavailable if the row of its primary cannot be reached.
  absl::StatusOr<CommitResult> Resolve(const CommitResult& unknown) const;

  // Counts the cells with notifications, up to `limit`.
  absl::StatusOr<Backlog> CountNotifications(size_t limit = 1'000'000) const;

  // Collects garbage now. Returns the safe point: of the versions of a cell at or before it, at
  // most the newest is left.
  absl::StatusOr<Timestamp> CollectGarbage() const;

  ClusterMetrics metrics() const;

  // Stops the workers and loaders of this cluster, waits for calls in progress, completes
  // background commits as far as the store can be reached within five seconds, and releases all
  // resources: when Close returns, the directory can be opened again. Further calls fail with
  // FailedPrecondition, except that calling Close again returns the same status. Returns
  // FailedPrecondition, and does nothing, if called by an observer, a load function or another
  // callback of this cluster. A commit in progress runs to its outcome; a read that waits for a
  // lock ends.
  absl::Status Close() const;

  // Implementation detail.
  const std::shared_ptr<internal::Engine>& engine() const { return engine_; }
  explicit Cluster(std::shared_ptr<internal::Engine> engine) : engine_(std::move(engine)) {}

 private:
  absl::Status Run(absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                   const TransactionOptions& options, CommitResult* result) const;

  std::shared_ptr<internal::Engine> engine_;  // never null
};

// Implementation details follow.

template <std::invocable<ReadWrite&> Fn>
auto Cluster::Transact(Fn&& fn, const TransactionOptions& options, CommitResult* result) const {
  using R = std::invoke_result_t<Fn&, ReadWrite&>;
  if constexpr (std::is_void_v<R>) {
    return Run([&](ReadWrite& t) { return fn(t), internal::FirstReadError(t); }, options, result);
  } else if constexpr (std::same_as<R, absl::Status>) {
    return Run([&](ReadWrite& t) { return fn(t); }, options, result);
  } else {
    static_assert(internal::kIsStatusOr<R>,
                  "a transaction function returns void, absl::Status or absl::StatusOr<T>");
    std::optional<R> value;  // of the last attempt
    const auto attempt = [&](ReadWrite& t) {
      value.reset();
      return value.emplace(fn(t)).status();
    };
    absl::Status status = Run(attempt, options, result);
    return status.ok() ? *std::move(value) : R(std::move(status));
  }
}

}  // namespace percolator

#endif  // PERCOLATOR_CLUSTER_H_
