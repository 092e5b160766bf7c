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
// WEAK    The column is declared notify-only: it can't be written, only notified, which never conflicts. After a
//         notification an observer runs at least once; several runs may commit, so it must be idempotent over the state
//         it finds.
//
// An observer may be run many times and commits at most once: it must have no effects but through its transaction.

#ifndef PERCOLATOR_OBSERVER_H_
#define PERCOLATOR_OBSERVER_H_

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
#include "percolator/transaction.h"

namespace percolator {

class Cluster;

// What an observer is told: which cell changed, and when at the latest.
struct Notification {
  CellName cell;
  Timestamp commit_ts;
};

// OK: commit what was written to `t`. kAborted: run again. Any other error: run again after a while, and after
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

struct WorkerOptions {
  int threads = 4;       // that run observers
  int scanners = 1;      // that look for notifications nobody hinted at
  int max_chain = 1000;  // a chain of notifications longer than this is reported as a cycle
};

struct ObserverMetrics {
  std::string name;
  int64_t runs = 0;
  int64_t commits = 0;
  int64_t conflicts = 0;
  int64_t failures = 0;
  int64_t quarantined = 0;
  int64_t pending = 0;
  Duration oldest{0};       // age of the oldest notification not yet acted on
  Duration latency_p50{0};  // from commit to observed
  Duration latency_p99{0};
};

// A notification whose observer kept failing.
struct Quarantined {
  std::string observer;
  CellName cell;
  int attempts = 0;
  std::string error;
};

class Worker {
 public:
  explicit Worker(Cluster* cluster, const WorkerOptions& options = {});
  // Stops, if Stop was not called.
  ~Worker();

  // REQUIRES: not started.
  Worker& Observe(ObserverSpec spec);

  // Checks the observers (tables exist, names are distinct, kinds fit the columns) and starts running them.
  absl::Status Start();
  // Finishes the observers that are running, and takes up no others.
  void Stop();
  void Pause();
  void Resume();

  // Returns when there is nothing left to do: no notification anywhere, none made meanwhile.
  absl::Status WaitUntilIdle(Duration timeout);

  // Marks every existing value of the observer's column as changed: for an observer that is new to old data.
  absl::Status Backfill(std::string_view observer);

  std::vector<ObserverMetrics> Metrics() const;
  // The observers and what they observe, for a person to read.
  std::string DescribeGraph() const;

  absl::StatusOr<std::vector<Quarantined>> ListQuarantine();
  absl::Status Replay(const Quarantined& entry);
  absl::Status Drop(const Quarantined& entry);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVER_H_
