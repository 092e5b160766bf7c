// SPDX-License-Identifier: Apache-2.0

// Dispatch: decides which observer runs next, and for which cell.
//
// A cell that dispatch has taken up has a job for each of its observers:
//
//                  Hint, Offer        a thread is free
//     (no job)   ---------------> ready -------------> running ---> done
//                                   ^                   |   |        |
//                                   |   after a while   |   |        | Hint: it changed again
//                                   +---- waiting <-----+   +--------+-----> ready
//                                               failure       Hint while it ran
//
// When all jobs of a cell are done, its marks up to the smallest S at which each was done are removed (N4), mostly by
// the commit of the last of them, and the cell ends: dispatch forgets it.
//
// The terms:
//
//     notification   tells an observer that a cell has changed (percolator/observer.h)
//     mark           its durable form, for all observers of the cell together (src/txn/mark.h)
//     hint           a message that a cell has a new mark; it may be lost
//     offer          a scanner has found the mark of a cell (scanner.h)
//     queued cell    a cell that dispatch has taken up, until it ends (queued_cell.h)
//     job            the work of one observer for one queued cell (job.h)
//     attempt        a thread claims the row and runs the observer, once (attempt.h)
//     lane           the queue of the jobs of one observer (lane.h)
//
// N11  Each observer has its own lane: a queue, a limit of concurrent runs, a limit of pending jobs. Threads take from the lanes
//      in turn, so an observer that fails, or has a long queue, delays another by at most one run. An observer with long runs
//      may take all threads at times: ObserverSpec::max_concurrency prevents that.
// N10  Hints and claims decide which worker runs an observer, and when, never whether a run may commit.
//
// FOREIGN    This worker only checks observers that it does not have. While one has something to do, the marks of the cell
//            stay, for the worker that has it (cluster_observers.h).
// FULL       If a lane has no room, its job is left out, and the marks stay for a scanner.
// RESTING    A cell with work left is not taken up again for a scan period, unless it changes. Dispatch remembers which
//            observers were done with it, and at which S: so the cell ends even if there is never room for all of them
//            (resting_cells.h).
// CLAIMS     The row of a cell is claimed before its first job runs, or by the scanner that found it. It is released when the
//            cell ends, or only waits for the next attempt after a failure. If another worker has the row, the cell is left to
//            that worker.
//
// The mutex guards all of this, and no function releases it in the middle. A function that calls DispatchCallbacks does
// not hold it; a function that holds it returns the calls to make next (RunJobs, FollowUp).

#ifndef PERCOLATOR_OBSERVE_DISPATCH_H_
#define PERCOLATOR_OBSERVE_DISPATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/observer.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/observe/attempt.h"
#include "src/observe/cluster_observers.h"
#include "src/observe/queued_cell.h"
#include "src/observe/resting_cells.h"
#include "src/observe/retry_queue.h"

namespace percolator {

// Thread-safe.
class Dispatch {
 public:
  // The runtime must outlive this object.
  Dispatch(Runtime* runtime, const WorkerOptions& options, std::vector<ObserverSpec> own, DispatchCallbacks callbacks);
  // Calls Stop.
  ~Dispatch();

  // Sets the observers of the cluster. Those of this worker run only while they are among them.
  void SetObservers(std::vector<ObserverInfo> all);
  // The observers have changed, and SetObservers will follow: until then no marks are removed.
  void RecheckObservers();
  bool doubts_observers() const;
  enum class Interest : uint8_t {
    kNone,    // the column is not observed
    kOthers,  // all of its observers are foreign
    kOurs,    // this worker runs one of them
  };
  Interest InterestIn(std::string_view table, std::string_view column) const;
  // Returns the tables that have an observed column.
  std::set<std::string> ObservedTables() const;

  void Start();
  // Waits for the jobs that run, and drops the others.
  void Stop();
  // Drops the jobs that do not run, and takes up no others until Resume. Releases their claims, for other workers.
  void Pause();
  void Resume();
  bool paused() const;

  // The cell has changed. Waits for nothing but a mutex.
  void Hint(const CellName& cell);
  // A scanner found a mark of the cell, and claimed its row if `claimed`. Returns false if the cell was not taken up;
  // then the claim stays with the caller.
  bool Offer(const CellName& cell, bool claimed);
  // Returns whether an offer would be refused because the cell is queued or rests.
  bool Has(const CellName& cell) const;
  // Returns whether a scanner should go on: an observer of this worker has room, or this worker has no observers, and
  // its scanners only remove marks that no observer needs.
  bool HasRoom() const;
  // Ends the rest of all cells.
  void EndAllRests();
  // Returns the number of jobs that run now, and of cells that are being ended.
  size_t running() const;

  std::vector<ObserverMetrics> metrics() const;
  // The observed columns (table and column) that the observers were seen to change, by observer.
  using Triggered = std::map<std::string, std::set<std::pair<std::string, std::string>>>;
  Triggered triggered() const;

 private:
  // What a thread does for the cell after an attempt, without the mutex: at most one of these.
  struct FollowUp {
    std::optional<Timestamp> remove_until;  // remove marks, then call MarksRemoved
    bool release_claim = false;
  };

  // Steps of a thread.
  void RunJobs() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Attempt> WaitForAttempt() ABSL_LOCKS_EXCLUDED(mutex_);
  FollowUp Finish(const Attempt& attempt, const AttemptResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  FollowUp MarksRemoved(const JobRef& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseClaims(const std::vector<CellName>& cells) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns null if the cell is not taken up: this worker has no observer for it, or there is no room.
  std::shared_ptr<QueuedCell> TakeUp(const CellName& cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // States of a job.
  void MakeReady(const JobRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<JobRef> NextReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Attempt Begin(JobRef ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryLater(const JobRef& ref, Duration first, Duration max, int failures) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void MakeDone(Job* job, bool left_out);

  // After an attempt.
  static void Count(const Attempt& attempt, const AttemptResult& result);
  void ApplyOutcome(const Attempt& attempt, const AttemptResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoMark(const JobRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DoneAt(const JobRef& ref, Timestamp start_ts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The end of a cell.
  FollowUp ContinueEnd(QueuedCell* cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Timestamp> MarksToRemove(const QueuedCell& cell) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rest(const QueuedCell& cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops all jobs that do not run. Returns the cells whose claims the caller must release.
  std::vector<CellName> DropPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Runtime* const runtime_;
  const WorkerOptions options_;
  const DispatchCallbacks callbacks_;
  const std::unique_ptr<WaitQueue> changed_;

  mutable Mutex mutex_;
  ClusterObservers observers_ ABSL_GUARDED_BY(mutex_);
  bool doubted_ ABSL_GUARDED_BY(mutex_) = false;  // the observers may have changed
  std::map<CellName, std::shared_ptr<QueuedCell>> cells_ ABSL_GUARDED_BY(mutex_);
  RetryQueue retries_ ABSL_GUARDED_BY(mutex_);
  RestingCells resting_ ABSL_GUARDED_BY(mutex_);
  size_t next_lane_ ABSL_GUARDED_BY(mutex_) = 0;
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;  // not yet ended
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_DISPATCH_H_
