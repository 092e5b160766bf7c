// Scanner: finds cells that wait to be observed, and of which no hint told.
//
// It goes through the tablets of the observed tables, in a circle that begins at a random key of a random tablet, and reads
// nothing but the family notify. Now and then it looks at all tables, for what observers that were removed have left.
//
//     a final mark of an observed column      the row is claimed, the cell offered to dispatch
//     ... of a column that nobody observes    removed. The observers are read again first, after the mark: one that was
//                                             added since is promised only what changes later, or is backfilled
//     ... of which the row is claimed         another worker is there: it is passed by. If that is most of a page, the scanner
//                                             teleports to another random place, so that workers do not run behind one
//                                             another (section 2.4 of the paper). For every single one it would take longer
//     a pending mark older than the lease     its writer is dead or slow: its lock is resolved
//     a younger one                           left alone
//
// A circle is followed by a wait: a hundredth of the scan period, which grows to all of it while nothing is found.
// What other scanners have found before, or is already being worked on, counts as nothing (N10: it is only about speed).

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

// A key in [start, limit), evenly chosen by its first bytes that can differ; `start` if there is no room between.
std::string KeyBetween(const std::string& start, const std::optional<std::string>& limit, uint64_t random);

// A part of a table to be scanned.
struct ScanPiece {
  std::string table;
  RowRange rows;
};

// The pieces in their order, from `key` in the piece `first` on, and round to there.
std::vector<ScanPiece> Circle(std::vector<ScanPiece> pieces, size_t first, const std::string& key);

struct ScannerCallbacks {
  std::function<bool(const CellName& cell)> claim;
  std::function<void(const CellName& cell)> release;
  // Reads the observers of the cluster, and tells dispatch.
  std::function<absl::Status()> reload;
};

class Scanner {
 public:
  // Engine and dispatch must outlive this.
  Scanner(Engine* engine, Dispatch* dispatch, const WorkerOptions& options, ScannerCallbacks callbacks);
  // Stops.
  ~Scanner();

  void Start();
  void Stop();
  // Those that wait go on at once.
  void Wake();

  // Looks at all tables, and deals with some of what is there. Returns one of the marks it found; absent: there was none.
  absl::StatusOr<std::optional<FoundMark>> LookEverywhere();

 private:
  enum class Sweep : uint8_t {
    kNothing,  // was found
    kFound,
    kTeleport,  // most of a page was claimed by other workers
    kFull,      // dispatch can't take up more, or is paused
  };
  struct Handled {
    bool found = false;     // something new
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
  int tasks_ ABSL_GUARDED_BY(mutex_) = 0;  // that have not ended
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_SCANNER_H_
