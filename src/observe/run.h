// SPDX-License-Identifier: Apache-2.0

// One run of one observer for one cell: section 2.4 of the paper.
//
// N5  The mark is read first, then the start timestamp S is drawn: so the run sees the change of the mark.
// N2  STRONG: the observed cell and the observer's acknowledgement are read at S. If the cell has changed since the start of the
//     run that wrote the acknowledgement, the observer runs. Its transaction writes the acknowledgement, S, as its primary, so
//     of two runs for the same change one fails, and early.
// N4  Marks up to S are removed by the mutation that commits the primary's row, or separately, later; never one above S.
// N9  WEAK: the observer runs whenever there is a mark; there is no acknowledgement.
//
// A mark belongs to a cell, not to an observer. If a column has several observers, the mark is removed only up to the
// smallest S at which each of them had nothing to do or has committed: the caller keeps count (dispatch.h).

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
  // Null: only check whether the observer has something to do here (it belongs to another worker).
  const ObserverFunction* run = nullptr;
  CellName cell;
  // All other observers of the cell are done with it, at this S or later: the commit may remove marks up to the smaller
  // of the two S. Infinity: there are no others. Absent: leave the marks alone.
  std::optional<Timestamp> others_done_at;
  uint32_t max_chain = 0;  // see WorkerOptions
};

struct RunOutcome {
  enum class Kind : uint8_t {
    kNoMark,     // there is no mark: nothing to do for any observer of the cell
    kClean,      // the observer has nothing to do at start_ts
    kDirty,      // it has, but another worker runs it
    kCommitted,  // it ran and committed
    kConflict,   // it ran, and its commit lost to another transaction, or it asked to be run again
    kFailed,     // it returned an error, or threw: `status`
    kCycle,      // the chain of notifications is too long: it was not run
    kTrouble,    // an error of the store or oracle, a lock, or an unknown outcome of the commit: `status`
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

// A mark that a scan of the family notify found.
struct FoundMark {
  CellName cell;
  Timestamp timestamp;   // final: of the commit; pending: of the start
  bool pending = false;  // made with a lock that may still exist
};
// Returns a page of marks: per cell the newest final mark, and every pending one. Moves `rows` behind the page, and
// sets `done` if the range is read to its end.
absl::StatusOr<std::vector<FoundMark>> ScanMarks(Environment* env, const std::string& table, RowRange* rows,
                                                 size_t row_limit, bool* done);

// Settles a pending mark that is older than a lease: resolves its lock, which removes the mark or makes it final.
// Returns OK also if the owner is alive and nothing was done.
absl::Status SettlePending(Engine* engine, const FoundMark& mark);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_RUN_H_
