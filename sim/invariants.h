// SPDX-License-Identifier: Apache-2.0

// Invariants: watches the servers of a run, and reports at once when a promise of the protocol is broken.
//
// It keeps a shadow of all rows, of every transaction that ever left a trace in them and of every timestamp drawn.
// After each row mutation, read and draw it checks that this was allowed. So a violation names the event itself, not a
// later symptom. The results that clients get are compared with the shadow too.
//
// docs/invariants.md defines the labels. For each, this is checked, with s for the start of a transaction, c for its
// commit, P for the safe point:
//
//   O1   Timestamps grow.
//   T1   A transaction gets one verdict: a record in its primary's cell, or a marker in its row. The primary is first.
//   T2   Committed: each cell it has locked keeps the lock, or gets the locked change as a record at c. Nothing else.
//   T3   Rolled back: no record anywhere. A lock goes only for a record or a marker.
//   T4   A cell has at most one lock. A lock and a record, or a marker of the row, of one s never exist together.
//   T5   In a cell, the times from s to c of its records do not overlap; and no lock is set below a record.
//   T6   s < c. c was drawn after the last cell was locked.
//   T7   A verify record names the version that it verified.
//   T8   Once a snapshot has read a cell without finding a lock, no record at or below it appears there.
//   T10  A transaction reported as committed is committed at that time; one reported as aborted never is.
//   T11  A lock that is gone does not come back, nor does one come after the verdict.
//   T13  All locks of a transaction name the same primary.
//   T14  After a transaction was decided or its owner's lease has passed, a reader does not meet the same lock again
//        and
//        again. (A reader gets the whole answer of one call, or none of it.) In the end no lock is left.
//   T15  In the end the store holds what was applied.
//   G1   Nothing above P is collected, and a snapshot at P sees the same as before.
//   G2   P passes no snapshot that was reported before P was chosen. A verdict is collected only if no lock needs it.
//   G4   No lock is set at or below P.
//   G5   A record without a value has data, and data goes only with its record.
//
// For observed columns (Observe sets them and their observers), with S for the start of a run of an observer:
//
//   G6   The newest acknowledgement at P is collected only if the change that it acknowledges is gone or superseded.
//   N1   A lock has a pending mark beside it. Once there is a record of a change, a final mark at its c or later stays
//        until
//        every strong observer has acknowledged an S >= c. In the end no mark is left, and every observer has seen all.
//   N2   Between two acknowledgements S' < S of an observer, a change was committed in (S', S].
//   N4   A final mark is removed only when every strong observer has seen all changes up to it. A change that an
//        observer
//        has to see again has a mark of its own.
//   N6   A pending mark is removed together with its lock.
//   N9   When a change that notifies weakly is committed at c, the notified cell has a mark at c or later, or had one
//        that a
//        run with S >= c has removed.

#ifndef PERCOLATOR_SIM_INVARIANTS_H_
#define PERCOLATOR_SIM_INVARIANTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/spi/store.h"
#include "sim/answered_reads.h"
#include "sim/sim_coordinator.h"
#include "sim/sim_oracle.h"
#include "sim/store_server.h"
#include "src/observe/registry.h"
#include "src/txn/lock.h"
#include "src/txn/write_record.h"

namespace percolator::sim {

class Invariants final : public StoreWatcher, public OracleWatcher, public CoordinatorWatcher {
 public:
  struct Violation {
    std::string checker;
    std::string text;
  };

  // The options are those of all clusters that take part. `stop` is called at the first violation. If `silent`, it only
  // records which transactions committed, and reports no violations.
  Invariants(const ClusterOptions& options, bool silent, std::function<void()> stop)
      : lease_(options.lock_lease), retention_(options.gc_retention), silent_(silent), stop_(std::move(stop)) {}

  // Sets the observers for the whole run.
  void Observe(const std::vector<ObserverInfo>& observers);
  // Every transaction that changes the column notifies the cell, weakly.
  void ExpectNotified(const std::string& table, const std::string& column, const CellName& cell);

  // Reports a violation found here or elsewhere. Only the first counts, because later ones may be its consequences.
  void Violated(std::string_view checker, std::string_view text);
  const std::optional<Violation>& violation() const { return violation_; }

  // The result that a client got for the transaction with this start. A commit timestamp of zero: it wrote nothing.
  void OnCommitted(Timestamp start_ts, Timestamp commit_ts);
  void OnAborted(Timestamp start_ts);

  // The true commit timestamp of the transaction; absent if it was not committed.
  std::optional<Timestamp> CommitOf(Timestamp start_ts) const;
  Timestamp safe_point() const { return safe_point_; }
  // The number of changes of the cell. REQUIRES: it has a strong observer.
  size_t ChangesOf(const CellName& cell) const;

  // Checks T14, T15, G5 and N1 at the end of the run.
  void CheckEnd(Store* disk);

  // The watchers.
  bool WantsRows() const override { return false; }
  void OnMutation(const RowChange& change) override;
  void OnRead(const ServedRead& read) override;
  void OnScan(const ServedScan& scan) override;
  void OnHeard(const Process& process, const std::vector<Selector>& selectors, const Row& row) override;
  void OnSafePoint(Duration time, Timestamp safe_point) override;
  void OnTimestamps(Duration time, Timestamp first, uint32_t count) override;
  void OnOldestSnapshot(SessionId session, Timestamp oldest) override;

 private:
  // Events are numbered, to know their order.
  using Order = uint64_t;
  using RowName = std::pair<std::string, std::string>;  // table and row

  struct CellShadow {
    std::map<Timestamp, Lock> locks;
    std::map<Timestamp, WriteRecord> records;  // by commit timestamp
    std::set<Timestamp> data;
    std::set<Timestamp> marks;    // final
    std::set<Timestamp> pending;  // by start timestamp
  };
  struct RowShadow {
    std::map<std::string, CellShadow> cells;  // by column
    std::set<Timestamp> markers;
  };
  struct TransactionShadow {
    std::optional<CellName> primary;  // absent: nothing was ever locked
    std::set<CellName> cells;         // ever locked
    std::set<CellName> held;          // locked now
    Order last_lock = 0;
    std::optional<Timestamp> commit_ts;
    std::optional<CellName> marked;  // the place of its first rollback marker
    bool reported_aborted = false;
  };

  // The changes of one mutation to its row.
  struct CellDelta {
    std::vector<Timestamp> locked;
    std::map<Timestamp, Lock> unlocked;
    std::vector<Timestamp> recorded;  // commit timestamps
    std::map<Timestamp, WriteRecord> dropped;
    std::vector<Timestamp> data_dropped;
    std::vector<Timestamp> marks_removed;
  };
  struct RowDelta {
    std::map<std::string, CellDelta> cells;  // by column
    std::vector<Timestamp> marked;
    std::vector<Timestamp> unmarked;
  };
  // Records of one transaction that a mutation added.
  struct NewRecord {
    CellName cell;
    Timestamp commit_ts;
  };

  // The state of a cell's strong observers. Outlives garbage collection.
  struct ObservedShadow {
    std::set<Timestamp> changes;  // by commit timestamp
    // By observer, its last acknowledgement. Zero: none, or the observer has to run again.
    std::map<std::string, Timestamp> seen;
    std::map<std::string, Timestamp> done;  // by observer, its highest acknowledgement ever
  };
  // The column of an acknowledgement.
  struct AckOf {
    std::string column;
    std::string observer;
  };

  // Reports that an invariant is broken.
  void Broken(std::string_view checker, std::string_view text);
  void KeepTruth(const RowMutation& mutation);

  RowDelta Apply(const RowMutation& mutation);
  void ApplySet(const Mutation& mutation, RowShadow* row, RowDelta* delta);
  static void ApplyErase(const Mutation& mutation, RowShadow* row, RowDelta* delta);

  void CheckLocked(const CellName& cell, Timestamp start_ts, const RowShadow& row);
  void CheckMarked(const RowName& name, Timestamp start_ts, const RowShadow& row);
  void CheckCommitted(Timestamp start_ts, const std::vector<NewRecord>& records, const RowDelta& delta);
  void CheckVerdict(Timestamp start_ts, const TransactionShadow& txn, const std::vector<NewRecord>& records);
  void CheckRecord(const CellName& cell, Timestamp commit_ts, const CellShadow& shadow);
  void CheckPlaceInTime(const CellName& cell, Timestamp commit_ts, const CellShadow& shadow);
  void CheckUnlocked(const CellName& cell, const CellDelta& delta, const CellShadow& shadow, const RowShadow& row);
  void CheckDropped(const CellName& cell, const CellDelta& delta, const CellShadow& shadow);
  void CheckAckDropped(const CellName& ack, const WriteRecord& record);
  void CheckUnmarked(const RowName& name, Timestamp start_ts);
  void CheckData(const CellName& cell, const CellDelta& delta, const CellShadow& shadow);

  // Checks the columns that a mutation touched.
  void CheckObserved(const RowName& name, const RowDelta& delta, const RowShadow& row);
  void NoteAck(const CellName& cell, const std::string& observer, const WriteRecord& record);
  void CheckMarks(const CellName& cell, const CellShadow& shadow, const ObservedShadow& observed);
  void CheckMarksRemoved(const CellName& cell, const std::vector<Timestamp>& removed, const ObservedShadow& observed);
  void CheckPending(const CellName& cell, const CellShadow& shadow);
  void NoteWeak(const RowName& name, const RowDelta& delta, const RowMutation& mutation);
  void CheckWeak();
  void CheckNothingToObserve();

  bool IsOver(const FoundLock& met) const;

  std::optional<Order> DrawnAt(Timestamp ts) const;
  void CheckAgainstDisk(Store* disk);

  const Duration lease_;
  const Duration retention_;
  const bool silent_;
  const std::function<void()> stop_;
  std::optional<Violation> violation_;
  const RowChange* change_ = nullptr;  // under check

  Order order_ = 0;
  std::map<RowName, RowShadow> rows_;
  std::map<Timestamp, TransactionShadow> transactions_;  // by start timestamp
  AnsweredReads reads_;
  // Strong observers, by table and column.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> observers_;
  std::map<std::pair<std::string, std::string>, AckOf> acks_;  // by table and the acknowledgement's column
  std::map<CellName, ObservedShadow> observed_;
  // By table and column, the cell that a change notifies weakly.
  std::map<std::pair<std::string, std::string>, CellName> notified_;
  std::map<CellName, Timestamp> weak_removed_;  // the highest mark ever removed from such a cell
  // Commits that are not yet checked: the rows of a commit in one step come one after the other.
  struct Owed {
    Duration time;
    CellName cell;
    Timestamp commit_ts;
  };
  std::vector<Owed> owed_;
  std::map<std::pair<const Process*, Timestamp>, int> met_;  // times met, by start timestamp
  Timestamp safe_point_;

  struct Drawn {
    uint32_t count;
    Order order;
  };
  std::map<Timestamp, Drawn> drawn_;  // by the first of them
  Timestamp next_;                    // the lower bound of the next draw

  struct Report {
    Order order;
    Timestamp oldest;
  };
  std::map<SessionId, std::vector<Report>> reports_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_INVARIANTS_H_
