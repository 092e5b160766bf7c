// Observers: code that runs when a column changes.
//
// A worker is constructed in main(), with its observers:
//
//     Worker worker(cluster.get());
//     worker.Observe({.name = "parse", .table = "documents", .column = "contents", .run = Parse});
//     worker.Observe({.name = "cluster", .table = "documents", .column = "hash", .run = AddToCluster});
//     if (absl::Status s = worker.Start(); !s.ok()) ...
//
// STRONG  (the default) After a write to the column commits, the observer runs in a transaction of its own. For each
//         change at most one such transaction commits; several changes may be seen by one run. A deletion is a change.
//         Nothing is lost, whatever dies and when.
// WEAK    The column is declared notify-only (TableSchema): it can't be written, only notified (ReadWrite::Notify), which
//         never conflicts. After a notification the observer runs at least once; several runs may commit, so it must be
//         idempotent over the state it finds.
//
// An observer may be run many times and commits at most once for a change: it must have no effects but through its
// transaction. Effects outside go through an export queue (percolator/export_queue.h).
//
// WHO OBSERVES  The observers of a cluster are those of the worker that was started last, and are kept in the cluster: so
//         changes are notified also while no worker runs, and by processes that have none. All workers of a cluster have
//         the same observers, as a rule; WorkerOptions::add_only is for others. What a process writes is notified
//         according to the observers it knows: those of its own workers at once, those that a worker in another process
//         has brought when it opens the cluster and, later, within half of ClusterOptions::lock_lease.

#ifndef PERCOLATOR_OBSERVER_H_
#define PERCOLATOR_OBSERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"
#include "percolator/transaction.h"

namespace percolator {

class Cluster;

// What an observer is told: which cell changed, and when at the latest.
struct Notification {
  CellName cell;
  Timestamp commit_ts;
};

// OK: commit what was written to `t`. kAborted: run again. kUnavailable, kDeadlineExceeded: something that the observer
// needs can't be reached, run again after a while, forever. Any other error: run again after a while, and after
// ObserverSpec::attempts of them put the notification into quarantine.
using ObserverFunction = std::function<absl::Status(ReadWrite& t, const Notification& notification)>;

enum class NotificationKind : uint8_t { kStrong, kWeak };

struct ObserverSpec {
  std::string name;  // [A-Za-z0-9_-]{1,64}; names the acknowledgement column, so it must not change
  std::string table;
  std::string column;
  NotificationKind kind = NotificationKind::kStrong;
  ObserverFunction run;
  int concurrency = 0;  // runs at once in this worker; 0: as many as it has threads
  int attempts = 16;    // failures before quarantine
};

// An observer as the cluster knows it.
struct ObserverInfo {
  std::string name;
  std::string table;
  std::string column;
  NotificationKind kind = NotificationKind::kStrong;

  friend bool operator==(const ObserverInfo&, const ObserverInfo&) = default;
};

struct WorkerOptions {
  int threads = 4;   // that run observers
  int scanners = 1;  // that look for notifications nobody hinted at
  // Pause between scans that found nothing: starts at a hundredth of this and grows to it.
  Duration scan_period = std::chrono::seconds(1);
  // At most this many cells wait in this worker (each observer may always have one). The rest stay in the cluster for scanners.
  size_t queue = 10'000;
  // Between a failure of an observer and its next attempt: doubling, from the first to the last.
  Duration first_retry = std::chrono::milliseconds(10);
  Duration last_retry = std::chrono::seconds(10);
  // A notification at the end of a longer chain, each made by the observer that the one before had run, goes to quarantine:
  // it is taken for a cycle. A weak observer that notifies its own cell, to go on with its work later, makes no chain longer.
  uint32_t max_chain = 1000;
  // Keep observers that other workers have brought and this one does not have. Else they are removed.
  bool add_only = false;
  // Called after a run of an observer has committed, by the thread that ran it. For tests and measurements: a process that
  // dies in between does not call it. What it throws is ignored.
  std::function<void(std::string_view observer, const Notification& notification, Timestamp commit_ts)> on_commit;
  // For measuring what they are worth: run observers as soon as a commit tells of a change; keep out of each other's way by
  // claims; go elsewhere when most of what is found is another worker's.
  bool hints = true;
  bool claims = true;
  bool teleport = true;
};

struct ObserverMetrics {
  std::string name;
  int64_t runs = 0;       // of the function
  int64_t commits = 0;    // of those
  int64_t conflicts = 0;  // runs whose commit lost against another transaction
  int64_t failures = 0;   // runs that returned an error
  int64_t troubles = 0;   // runs that the store, the oracle or locks stood in the way of: tried again, never given up
  int64_t cycles = 0;     // notifications at the end of too long a chain
  int64_t quarantined = 0;
  int64_t pending = 0;      // cells waiting in this worker
  Duration oldest{0};       // age of the oldest of them
  Duration latency_p50{0};  // from the commit of a change to the commit that observed it
  Duration latency_p99{0};
  struct Bucket {
    Duration up_to;
    int64_t count;
  };
  std::vector<Bucket> latency;  // the same as a histogram; only buckets that have something in them
};

// Notifications waiting in the whole cluster.
struct Backlog {
  size_t cells = 0;    // with notifications; no more are counted than was asked for
  Duration oldest{0};  // age of the oldest of these
};

// A notification whose observer kept failing.
struct Quarantined {
  std::string observer;
  CellName cell;
  int attempts = 0;
  std::string error;
  Timestamp since;  // the run that gave it up
};

// Thread-safe, except Observe. Cluster::Close stops it too; it may be destroyed before or after.
class Worker {
 public:
  explicit Worker(Cluster* cluster, const WorkerOptions& options = {});
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Stops, if Stop was not called.
  ~Worker();

  // REQUIRES: not started.
  Worker& Observe(ObserverSpec spec);

  // Checks the observers, makes them known to the cluster, and starts running them. kInvalidArgument: one has a bad or
  // used name, no function, or a kind that does not fit its column. kNotFound: a table does not exist.
  absl::Status Start();
  // Finishes the observers that are running, and takes up no others: they wait in the cluster for the next worker. Returns
  // kFailedPrecondition, and does nothing, if called by an observer of the cluster.
  absl::Status Stop();
  // Takes up no others, until Resume.
  void Pause();
  void Resume();

  // Returns when there is nothing left to do: no notification anywhere, none made meanwhile. What is in quarantine is not
  // waited for. Exact for what this process does. A worker of another process that moves a notification from a table not yet
  // looked at to one already looked at is missed: where several run, stop the writers and wait in each.
  // kDeadlineExceeded: there still was something after `timeout`; the text says what.
  absl::Status WaitUntilIdle(Duration timeout);

  // Marks every existing value of the observer's column as changed: for an observer that is new to old data. Where it has
  // seen the value before, it does not run again.
  absl::Status Backfill(std::string_view observer);

  std::vector<ObserverMetrics> Metrics() const;
  // The observers, what they observe, and which observed columns they have been seen to write: for a person to read.
  std::string DescribeGraph() const;

  absl::StatusOr<std::vector<Quarantined>> ListQuarantine();
  // The observer runs again for that cell. kNotFound: it is not in quarantine any more. kFailedPrecondition: the cluster has
  // no such observer of that column now; the entry stays.
  absl::Status Replay(const Quarantined& entry);
  // Forgets it. The next change of the cell is observed as usual.
  absl::Status Drop(const Quarantined& entry);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // the engine refers to it weakly, to stop it on Close
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVER_H_
