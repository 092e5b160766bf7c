// SPDX-License-Identifier: Apache-2.0

// Observers: code that runs when a column changes.
//
// A worker is constructed in main(), with its observers:
//
//     Worker worker(cluster);
//     // absl::Status Parse(ReadWrite& t, const std::string& row)
//     worker.Observe(kContents, "parse", Parse);
//     worker.Observe(kReindex, "reindex", Reindex);   // a NotifyColumn: weak
//     PERCOLATOR_RETURN_IF_ERROR(worker.Start());
//
// STRONG  (the default) After a write to the column commits, the observer runs in its own
//         transaction. At most one such transaction commits for each change. One run may handle
//         several changes. A deletion is a change. No change is lost, whichever process fails at
//         whatever moment.
// WEAK    The column is notify-only (TableSchema): it cannot be written, only notified
//         (ReadWrite::Notify), which never conflicts. After a notification the observer runs at
//         least once. Several runs may commit, so the observer must be idempotent over the state it
//         finds.
//
// An observer may run many times for one change although at most one run commits, so it must have
// no effects except through its transaction. Effects outside the cluster go through an export queue
// (percolator/export_queue.h).
//
// REGISTRY  The cluster stores the list of its observers: those of the worker that was started
//         last. So a change is notified even if no worker is running, and even if the process that
//         writes has no worker. Usually all workers of a cluster have the same observers; otherwise
//         see WorkerOptions::add_only. A process learns of the observers of its own workers
//         immediately. It reads those of other processes when it opens the cluster, and then again
//         at intervals of half of ClusterOptions::lock_lease.

#ifndef PERCOLATOR_OBSERVER_H_
#define PERCOLATOR_OBSERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/column.h"
#include "percolator/transaction.h"
#include "percolator/types.h"

namespace percolator {

class Cluster;

// Names the cell that changed, and the commit timestamp of its newest change.
struct Notification {
  CellName cell = {};
  Timestamp commit_ts = {};
};

namespace internal {

template <typename Fn>
concept TakesNotification = std::is_invocable_v<Fn&, ReadWrite&, const Notification&>;
template <typename Fn>
concept TakesRow =
    !TakesNotification<Fn> && std::is_invocable_v<Fn&, ReadWrite&, const std::string&>;

}  // namespace internal

// The function of an observer, with one of the signatures
//
//     absl::Status(ReadWrite& t, const Notification& notification)
//     absl::Status(ReadWrite& t, const std::string& row)
//
// or the same with void instead of absl::Status, which counts as returning the first error of its
// reads, or OK. If the function returns OK, its writes are committed. After Aborted it runs again.
// After Unavailable, DeadlineExceeded, or OutOfRange because its snapshot has become too old, it
// runs again after a delay, indefinitely. After any other error or an exception it runs again after
// a delay, and after ObserverOptions::max_attempts such errors the notification is quarantined.
class ObserverFunction {
 public:
  ObserverFunction() = default;
  ObserverFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): like std::function
  template <internal::TakesNotification Fn>
  ObserverFunction(Fn fn)  // NOLINT(google-explicit-constructor)
      : run_(IsEmpty(fn) ? nullptr : Run([fn](ReadWrite& t, const Notification& n) mutable {
          return Call(fn, t, n);
        })) {}
  template <internal::TakesRow Fn>
  ObserverFunction(Fn fn)  // NOLINT(google-explicit-constructor)
      : run_(IsEmpty(fn) ? nullptr : Run([fn](ReadWrite& t, const Notification& n) mutable {
          return Call(fn, t, n.cell.row);
        })) {}

  absl::Status operator()(ReadWrite& t, const Notification& n) const { return run_(t, n); }
  friend bool operator==(const ObserverFunction& f, std::nullptr_t) { return f.run_ == nullptr; }

 private:
  using Run = std::function<absl::Status(ReadWrite& t, const Notification& n)>;

  // Returns whether `fn` is a null pointer or an empty std::function.
  template <typename Fn>
  static bool IsEmpty(const Fn& fn) {
    if constexpr (std::is_pointer_v<Fn> || requires { fn.target_type(); }) return fn == nullptr;
    return false;
  }
  template <typename Fn, typename Arg>
  static absl::Status Call(Fn& fn, ReadWrite& t, const Arg& arg) {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn&, ReadWrite&, const Arg&>>) {
      return fn(t, arg), internal::FirstReadError(t);
    } else {
      return fn(t, arg);
    }
  }

  Run run_;
};

struct ObserverOptions {
  int max_concurrency = 0;  // runs at the same time in this worker; 0: as many as it has threads
  int max_attempts = 16;    // errors before the notification is quarantined
};

enum class NotificationKind : uint8_t { kStrong, kWeak };

// An observer whose column is known only at run time.
struct ObserverSpec {
  std::string name = {};  // [A-Za-z0-9_-]{1,64}; must not change
  std::string table = {};
  std::string column = {};
  NotificationKind kind = NotificationKind::kStrong;
  ObserverFunction run = {};
  int max_concurrency = 0;  // as in ObserverOptions
  int max_attempts = 16;
};

// An observer as the cluster stores it.
struct ObserverInfo {
  std::string name = {};
  std::string table = {};
  std::string column = {};
  NotificationKind kind = NotificationKind::kStrong;

  friend bool operator==(const ObserverInfo&, const ObserverInfo&) = default;
};

struct WorkerOptions {
  // Threads that run observers.
  int threads = 4;
  // Threads that scan the cluster for notifications. Most notifications are announced to the worker
  // directly; scanning finds the rest.
  int scanners = 1;
  // Maximum pause after a scan that found nothing. The pause starts at a hundredth of this and
  // grows.
  Duration scan_period = std::chrono::seconds(1);
  // Maximum number of cells queued in this worker. Each observer may queue an equal share of them,
  // and always at least one. Further cells stay in the cluster until there is room.
  size_t max_queued_cells = 10'000;
  // Delay between an observer's error and its next attempt. It starts at the minimum and doubles up
  // to the maximum.
  Duration min_retry_delay = std::chrono::milliseconds(10);
  Duration max_retry_delay = std::chrono::seconds(10);
  // Maximum length of a chain of notifications, each caused by the run for the one before. A longer
  // chain is considered a cycle, and its last notification is quarantined. A weak observer that
  // notifies its own cell, to continue later, does not extend the chain.
  uint32_t max_chain = 1000;
  // Keep the cluster's observers that this worker does not have. By default Start removes them from
  // the cluster.
  bool add_only = false;
  // Called after a run of an observer has committed, by the thread that ran it. For tests and
  // measurements: it is not called if the process dies after the commit. Exceptions that it throws
  // are ignored.
  std::function<void(std::string_view observer, const Notification& notification,
                     Timestamp commit_ts)>
      on_commit = nullptr;
  // For measuring what each of these is worth. Hints: run observers as soon as a commit announces a
  // change. Claims: avoid rows that another worker has claimed. Teleport: continue a scan elsewhere
  // if most of what it finds is claimed.
  bool hints = true;
  bool claims = true;
  bool teleport = true;
};

struct ObserverMetrics {
  std::string name = {};
  int64_t runs = 0;       // of the function
  int64_t commits = 0;    // runs that committed
  int64_t conflicts = 0;  // runs whose commit conflicted with another transaction
  int64_t failures = 0;   // runs that returned an error
  // Runs that failed because the store, the oracle or a lock was unavailable; retried indefinitely.
  int64_t transient_errors = 0;
  int64_t cycles = 0;       // notifications that exceeded WorkerOptions::max_chain
  int64_t quarantined = 0;  // notifications that were quarantined
  int64_t pending = 0;      // cells queued in this worker
  Duration oldest{0};       // age of the oldest of these
  Duration latency_p50{0};  // from the commit of a change to the commit of the run that handled it
  Duration latency_p99{0};
  struct Bucket {
    Duration up_to{0};
    int64_t count = 0;
  };
  std::vector<Bucket> latency = {};  // the same as a histogram, without empty buckets
};

// A notification whose observer kept failing.
struct Quarantined {
  std::string observer = {};
  CellName cell = {};
  int attempts = 0;
  std::string error = {};  // of the last attempt
  Timestamp since = {};    // start timestamp of the transaction that quarantined it
};

// Runs observers. Thread-safe, except Observe. Cluster::Close stops it; it may be destroyed before
// or after that.
class Worker {
 public:
  explicit Worker(const Cluster& cluster, const WorkerOptions& options = {});
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Stops, if Stop was not called. In an observer, a load function or another callback of this
  // cluster it begins to stop and does not wait: running observers end later, and Cluster::Close
  // waits for them.
  ~Worker();

  // Adds an observer of a column: strong for a Column, weak for a NotifyColumn. The name matches
  // [A-Za-z0-9_-]{1,64} and must not change: it identifies what the observer has processed. Errors
  // are returned by Start. Has no effect on a worker that was started.
  template <typename T, typename C>  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  void Observe(const Column<T, C>& column, std::string name, ObserverFunction fn,
               const ObserverOptions& options = {}) {
    Add(column.table(), column.name(), NotificationKind::kStrong, std::move(name), std::move(fn),
        options);
  }
  void Observe(const NotifyColumn& column, std::string name, ObserverFunction fn,
               const ObserverOptions& options = {}) {
    Add(column.table(), column.name(), NotificationKind::kWeak, std::move(name), std::move(fn),
        options);
  }
  void Observe(ObserverSpec spec);

  // Checks the observers, stores their list in the cluster, and starts to run them. Returns
  // InvalidArgument if an option is out of range, or if an observer has a malformed or duplicate
  // name, no function, or a kind that does not fit its column; NotFound if its table does not
  // exist; FailedPrecondition if the worker was started before, even if it was stopped since.
  absl::Status Start();
  // Waits for running observers and starts no others. Notifications stay in the cluster for the
  // next worker. Returns FailedPrecondition, and does nothing, if called by an observer, a load
  // function or another callback of this cluster.
  absl::Status Stop();
  // Starts no further runs until Resume.
  void Pause();
  void Resume();

  // Waits until no notification is left in the cluster, not counting the quarantine. Returns
  // DeadlineExceeded, and says what is left, if that takes longer than `timeout`.
  //
  // Exact if this process makes all the changes. If workers of other processes run too, their
  // observers may move a notification from a table that was not looked at yet to one that already
  // was. Then stop the writers and wait in each process.
  absl::Status WaitUntilIdle(Duration timeout);

  // Marks every existing value of the observer's column as changed, for an observer that was added
  // to a column with data. The observer does not run again for a value that it has processed. If
  // other processes write the column, call it once they know the observer (see REGISTRY). Returns
  // NotFound if the cluster has no such observer, InvalidArgument if it is weak, and
  // FailedPrecondition if this worker is not running.
  absl::Status Backfill(std::string_view observer);

  std::vector<ObserverMetrics> metrics() const;
  // Returns a text for people: the observers, their columns, and which observed columns they were
  // seen to write.
  std::string DescribeGraph() const;

  absl::StatusOr<std::vector<Quarantined>> ListQuarantine() const;
  // Removes the entry and notifies the observer again. A strong observer that has processed a later
  // change of the cell since then does not run. Returns NotFound if the entry is no longer
  // quarantined, and FailedPrecondition if the cluster no longer has this observer of this column;
  // then the entry stays.
  absl::Status Replay(const Quarantined& entry);
  // Removes the entry. The observer runs again when the cell changes next.
  absl::Status Drop(const Quarantined& entry);

 private:
  class Impl;
  void Add(std::string_view table, std::string_view column, NotificationKind kind, std::string name,
           ObserverFunction fn, const ObserverOptions& options);

  std::shared_ptr<Impl> impl_;  // the engine refers to it weakly, to stop it on Close
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVER_H_
