// One run of one observer for one cell: section 2.4 of the paper.
//
// N5  The mark is read first, then the start timestamp S is drawn: so the run sees the change that the mark is of.
// N2  STRONG: the observed cell and the observer's acknowledgement are read at S. If the cell has changed since the run that
//     wrote the acknowledgement started, the observer runs; its transaction writes the acknowledgement, S, as its primary, so
//     of two that run for the same change one fails, and early.
// N4  Marks up to S are removed, in the mutation that commits the primary's row, or alone, later; never one above S.
// N9  WEAK: the observer runs whenever there is a mark; no acknowledgement.
//
// A mark is of a cell, not of an observer. Where a column has several observers, it is removed only up to the smallest S at
// which each of them had nothing to do or has committed: the caller keeps count (dispatch.h).

#ifndef PERCOLATOR_OBSERVE_RUN_H_
#define PERCOLATOR_OBSERVE_RUN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "src/observe/registry.h"
#include "src/txn/engine.h"

namespace percolator {

struct RunRequest {
  const ObserverInfo* observer = nullptr;
  // Null: only look whether the observer has something to do here (it belongs to another worker).
  const ObserverFunction* run = nullptr;
  CellName cell;
  // All other observers of the cell are done with it, at this S or later: marks up to the smaller of the two S may go with
  // the commit. Infinity: there are no others. Absent: leave the marks alone.
  std::optional<Timestamp> others_done_at;
  uint32_t max_chain = 0;  // see WorkerOptions
};

struct RunOutcome {
  enum class Kind : uint8_t {
    kNoMark,     // there is no mark (any more): nothing to do for any observer of the cell
    kClean,      // the observer has nothing to do at start_ts
    kDirty,      // it has, but is not ours to run
    kCommitted,  // it ran and committed
    kConflict,   // it ran, and its commit lost against another transaction, or it asked to be run again
    kFailed,     // it returned an error, or threw: `status`
    kCycle,      // the chain of notifications is too long: it was not run
    kTrouble,    // the store, the oracle or a lock was in the way, or the outcome of the commit is not known: `status`
  };
  Kind kind = Kind::kTrouble;
  Timestamp start_ts;
  Timestamp change_ts;         // of the change that was observed
  Timestamp commit_ts;         // kCommitted
  bool marks_removed = false;  // as the request allowed
  absl::Status status;
  // kCommitted: table and column of the observed cells that it wrote or notified.
  std::set<std::pair<std::string, std::string>> triggered;
};

RunOutcome RunObserver(Engine* engine, const RunRequest& request);

// Removes the marks of a cell up to `until`. REQUIRES: every observer of the cell is done with it, at `until` or later (N4).
absl::Status RemoveMarks(Environment* env, const CellName& cell, Timestamp until);

// What a scan of the family notify finds in a row.
struct FoundMark {
  CellName cell;
  Timestamp timestamp;   // final: of the commit; pending: of the start
  bool pending = false;  // made with a lock that may still be there
};
// A page of marks; the row range of `request` is moved on, `done` tells that it is read to its end. Per cell the newest
// final mark, and every pending one.
absl::StatusOr<std::vector<FoundMark>> ScanMarks(Environment* env, const std::string& table, RowRange* rows,
                                                 size_t row_limit, bool* done);

// Deals with a pending mark that is older than a lease: its lock is resolved, which removes the mark or makes it final. OK
// also if its owner is alive and nothing was done.
absl::Status SettlePending(Engine* engine, const FoundMark& mark);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_RUN_H_
