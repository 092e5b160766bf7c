// Dispatch: which observer runs next, and for which cell.
//
// A dirty cell has an entry, and in it a unit for each of its observers:
//
//                  Hint, Offer        a thread is free
//     (no entry) ---------------> ready -------------> running ---> done
//                                   ^                   |   |        |
//                                   |   after a while   |   |        | Hint: it changed again
//                                   +---- waiting <-----+   +--------+-----> ready
//                                               failure       Hint while it ran
//
// When all units of an entry are done, marks up to the smallest S at which each was done are removed (N4), mostly by the
// commit of the last of them, and the entry ends.
//
// N11  Each observer has a lane of its own: a queue, a limit of runs at once, a limit of units that wait. Threads take from
//      the lanes in turn, so an observer that fails, or has a long queue, delays no other by more than one run. One whose
//      runs are long takes all threads at times: ObserverSpec::max_concurrency prevents that.
// N10  Hints and claims decide who works where and when, never whether a run may commit.
//
// FOREIGN    Observers that the cluster has and this worker has not are only looked at. While one has something to do, the
//            marks of the cell stay, for the worker that has it.
// FULL       Where a lane has no room, its unit is left out, and the marks stay for a scanner.
// RESTING    A cell of which something was left is not taken up again for a scan period, unless it changes. Which observers
//            were done with it, and at which S, is remembered: so it ends even if there is never room for all of them.
// CLAIMS     The row of an entry is claimed before its first unit runs, or was by the scanner that found it, and released
//            when the entry ends, or only waits for the next attempt after a failure. If another worker has it, it is left
//            to that.

#ifndef PERCOLATOR_OBSERVE_DISPATCH_H_
#define PERCOLATOR_OBSERVE_DISPATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/observe/histogram.h"
#include "src/observe/registry.h"
#include "src/observe/run.h"

namespace percolator {

// What dispatch does to the cluster: functions of run.h, and claims. They are called without its mutex.
struct DispatchSteps {
  std::function<RunOutcome(const RunRequest& request)> run;
  std::function<absl::Status(const CellName& cell, Timestamp until)> remove_marks;
  std::function<absl::StatusOr<Timestamp>(const ObserverInfo& observer, const CellName& cell, Timestamp tried_at,
                                          int attempts, const absl::Status& error)>
      quarantine;
  // False: another worker has the row.
  std::function<bool(const CellName& cell)> claim;
  std::function<void(const CellName& cell)> release;
};

class Dispatch {
 public:
  // The runtime must outlive this.
  Dispatch(Runtime* runtime, const WorkerOptions& options, std::vector<ObserverSpec> own, DispatchSteps steps);
  // Stops.
  ~Dispatch();

  // The observers of the cluster. Ours are run only while they are among them.
  void SetObservers(std::vector<ObserverInfo> all);
  // They have changed, and SetObservers will tell how: until then no marks are removed.
  void DoubtObservers();
  bool doubts_observers() const;
  enum class Interest : uint8_t {
    kNobody,  // has an observer for the column
    kOthers,  // but not this worker
    kOurs,
  };
  Interest InterestIn(std::string_view table, std::string_view column) const;
  // That somebody observes.
  std::set<std::string> ObservedTables() const;

  void Start();
  // Finishes the units that run, drops the others.
  void Stop();
  // Drops the units that do not run, and takes up no others until Resume. Their claims are released, for other workers.
  void Pause();
  void Resume();
  bool paused() const;

  // The cell has changed. Quick: never waits for anything but a mutex.
  void Hint(const CellName& cell);
  // A scanner found the cell dirty, and perhaps claimed its row. False: nothing was done, the claim stays the caller's.
  bool Offer(const CellName& cell, bool claimed);
  // Whether an offer would be refused, because the cell is here, or rests.
  bool Has(const CellName& cell) const;
  // Some observer of ours can take up more; or there is none, who could be short of room.
  bool HasRoom() const;
  // Cells that rest do so no longer.
  void EndRest();
  // Units that run at this moment, and entries that are being ended.
  size_t running() const;

  std::vector<ObserverMetrics> metrics() const;
  // Table and column of the observed cells that the observers were seen to change, by observer.
  using Triggered = std::map<std::string, std::set<std::pair<std::string, std::string>>>;
  Triggered triggered() const;

 private:
  struct Entry;
  // A unit of an entry; out of date if that is not in the state it should be in.
  struct Ref {
    std::shared_ptr<Entry> entry;
    size_t unit = 0;
  };

  // The units of one observer of ours; one more for those of all foreign observers.
  struct Lane {
    ObserverSpec spec;
    ObserverFunction counted_run;
    int limit = 1;
    size_t most_pending = 1;
    int running = 0;
    size_t pending = 0;  // not done
    std::deque<Ref> ready;

    std::atomic<int64_t> runs{0};
    int64_t commits = 0;
    int64_t conflicts = 0;
    int64_t failures = 0;
    int64_t transient_errors = 0;
    int64_t cycles = 0;
    int64_t quarantined = 0;
    Histogram latency;
    std::set<std::pair<std::string, std::string>> triggered;
  };

  struct Member {
    ObserverInfo info;
    Lane* lane;
    bool own;
  };
  using Members = std::shared_ptr<const std::vector<Member>>;
  using Column = std::pair<std::string, std::string>;

  enum class State : uint8_t { kReady, kRunning, kWaiting, kDone };
  struct Unit {
    const Member* member = nullptr;
    State state = State::kDone;
    bool again = false;                // a hint came while it ran
    bool left_out = false;             // done, but not with the cell
    std::optional<Timestamp> done_at;  // every change up to there is seen
    int failures = 0;
    int transient_errors = 0;
    Duration since{};     // it is not done
    Duration retry_at{};  // kWaiting
  };
  enum class ClaimState : uint8_t { kNone, kAsking, kHeld, kRefused };
  struct Entry {
    CellName cell;
    Members members;  // keeps what the units point to
    std::vector<Unit> units;
    ClaimState claim = ClaimState::kNone;
    bool stale = false;   // the observers of the cell have changed: its marks are not ours to remove
    bool ending = false;  // its marks are being removed
    Timestamp removed_until;
  };
  // A cell of which something was left.
  struct Rested {
    Duration until{};
    Members members;  // if they are others now, the rest says nothing
    std::vector<std::optional<Timestamp>> done_at;
  };
  // What a thread does outside the mutex, and what came of it.
  struct Task {
    Ref ref;
    const Member* member = nullptr;
    RunRequest request;
    bool ask_claim = false;
    bool claim_refused = false;  // known to be
    int failures = 0;            // before this run
  };
  struct Result {
    bool claim_refused = false;
    RunOutcome outcome;
    bool quarantine_tried = false;
    absl::StatusOr<Timestamp> quarantined_at = absl::UnknownError("");
  };

  void Loop();
  bool Take(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Task Begin(Ref ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Timestamp> OthersDoneAt(const Entry& entry, size_t unit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result Execute(const Task& task) const;
  void TellCommit(const Task& task, const RunOutcome& outcome) const;
  void Finish(const Task& task, const Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Something of it waits, and nothing else is to be done.
  static bool IsWaiting(const Entry& entry);
  // Releases the mutex meanwhile.
  void ReleaseClaim(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const Task& task, const Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyOutcome(const Task& task, const Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoMark(const Ref& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DoneAt(const Ref& ref, Timestamp start_ts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryLater(const Ref& ref, Duration first, Duration last, int times) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the entry if all is done; releases the mutex meanwhile.
  void EndIfDone(const std::shared_ptr<Entry>& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Timestamp> MarksToRemove(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rest(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  static bool HasRoom(const Lane& lane) { return lane.pending < lane.most_pending; }
  static bool IsWorthIt(const Entry& entry);
  std::shared_ptr<Entry> NewEntry(const CellName& cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(const Ref& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeDone(Unit* unit, bool left_out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the cells whose claims are to be released.
  std::vector<CellName> DropWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Members FindMembers(std::string_view table, std::string_view column) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsResting(const CellName& cell) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Runtime* const runtime_;
  const WorkerOptions options_;
  const DispatchSteps steps_;
  const std::unique_ptr<WaitQueue> changed_;

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // fixed; what is in them is guarded. The last is for foreign observers
  size_t next_lane_ ABSL_GUARDED_BY(mutex_) = 0;
  bool doubted_ ABSL_GUARDED_BY(mutex_) = false;             // the observers
  std::vector<ObserverInfo> known_ ABSL_GUARDED_BY(mutex_);  // from which observers_ was made
  std::map<Column, Members> observers_ ABSL_GUARDED_BY(mutex_);
  std::map<CellName, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Duration, Ref> waiting_ ABSL_GUARDED_BY(mutex_);  // by when they are ready again
  std::map<CellName, Rested> resting_ ABSL_GUARDED_BY(mutex_);
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;  // that have not ended
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_DISPATCH_H_
