// SPDX-License-Identifier: Apache-2.0

// Scanner: finds cells that have to be observed, and for which no hint arrived.
//
// It scans the tablets of the observed tables in a circle that begins at a random key of a random tablet, and reads
// only the family notify. Periodically it scans all tables, for marks of observers that were removed.
//
//     a final mark of an observed column      the row is claimed, the cell offered to dispatch
//     ... of a column without observers       removed. The observers are read again first, after the mark: an observer
//                                             that was added since must see only later changes, or is backfilled
//     ... whose row is claimed                another worker is there: the mark is skipped. If most marks of a page are, the
//                                             scanner teleports to another random place, so that workers do not run
//                                             behind one another (section 2.4 of the paper). After every single one
//                                             that would take longer
//     a pending mark older than the lease     its writer is dead or slow: its lock is resolved
//     a younger one                           left alone
//
// A circle is followed by a wait: a hundredth of the scan period, which grows to all of it while nothing is found.
// Cells that other scanners have found, or that are being worked on, do not count as found (N10: this is only about
// speed).

#ifndef PERCOLATOR_OBSERVE_SCANNER_H_
#define PERCOLATOR_OBSERVE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "percolator/spi/mutex.h"
#include "src/observe/dispatch.h"
#include "src/observe/run.h"
#include "src/txn/engine.h"

namespace percolator {

// Returns a key in [start, limit), evenly distributed by its first bytes that can differ; `start` if there is no key
// between.
std::string KeyBetween(const std::string& start, const std::optional<std::string>& limit, uint64_t random);

// A part of a table to be scanned.
struct ScanPiece {
  std::string table;
  RowRange rows;
};

// Returns the pieces in order, from `key` in the piece `first` on, and round to that key.
std::vector<ScanPiece> Circle(std::vector<ScanPiece> pieces, size_t first, const std::string& key);

struct ScannerCallbacks {
  std::function<bool(const CellName& cell)> claim;
  std::function<void(const CellName& cell)> release;
  // Reads the observers of the cluster, and passes them to dispatch.
  std::function<absl::Status()> reload;
};

class Scanner {
 public:
  // `engine` and `dispatch` must outlive this object.
  Scanner(Engine* engine, Dispatch* dispatch, const WorkerOptions& options, ScannerCallbacks callbacks);
  // Calls Stop.
  ~Scanner();

  void Start();
  void Stop();
  // Ends the waits of all scanners.
  void Wake();

  // Scans all tables for marks, and handles a page of each. Returns one of the marks found, or nullopt if there was
  // none.
  absl::StatusOr<std::optional<FoundMark>> LookEverywhere();

 private:
  enum class Sweep : uint8_t {
    kNothing,  // no mark was found
    kFound,
    kTeleport,  // most of a page was claimed by other workers
    kFull,      // dispatch cannot take up more, or is paused
  };
  struct Handled {
    bool found = false;     // a new mark
    size_t met_others = 0;  // cells whose rows other workers have claimed
  };

  void Loop();
  absl::StatusOr<Sweep> SweepOnce(bool all_tables, bool may_teleport);
  absl::StatusOr<std::vector<ScanPiece>> Pieces(bool all_tables);
  absl::StatusOr<std::set<std::string>> AllTables();
  absl::StatusOr<Handled> Handle(const std::vector<FoundMark>& marks);
  absl::Status HandlePending(const std::vector<FoundMark>& marks);
  void OfferCell(const CellName& cell, Handled* handled);
  bool IsStopping() const;
  void WaitFor(Duration timeout);

  Engine* const engine_;
  Dispatch* const dispatch_;
  const WorkerOptions options_;
  const ScannerCallbacks callbacks_;
  const std::unique_ptr<WaitQueue> changed_;

  mutable Mutex mutex_;
  int tasks_ ABSL_GUARDED_BY(mutex_) = 0;  // not yet ended
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_SCANNER_H_
