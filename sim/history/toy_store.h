// SPDX-License-Identifier: Apache-2.0

// Random histories for tests of the checkers: clients that use a versioned store in memory, randomly interleaved. The
// histories are correct by construction, unless the store is given a bug.

#ifndef PERCOLATOR_SIM_HISTORY_TOY_STORE_H_
#define PERCOLATOR_SIM_HISTORY_TOY_STORE_H_

#include <cstdint>

#include "sim/history/history.h"

namespace percolator {

enum class ToyBug : uint8_t {
  kNone,
  kReadsNewest,       // reads see the newest version, not that of their snapshot
  kReadsBlink,        // occasionally a read misses the newest version of its snapshot
  kNoConflictCheck,   // the last committer wins
  kFailureIsVisible,  // a commit that meets a conflict is refused, but takes effect
  kTornCommit,        // the keys of a commit become visible one after the other
  kOldSnapshots,      // transactions start at a timestamp that was drawn earlier
};

struct ToyOptions {
  ToyBug bug = ToyBug::kNone;
  int transactions = 200;  // besides the final read
  int processes = 8;
  int keys = 6;
  int operations_max = 5;  // of one transaction
  // Lists that are appended to, or values that are written, deleted and not unique.
  bool lists = true;
  // After this number of appends to a list, another key takes its place.
  int appends_per_key = 64;
  // Percentages of transactions:
  int blind_percent = 20;   // write without reading first
  int unknown_percent = 5;  // get no answer
  int abort_percent = 3;    // are aborted by their clients
  int verify_percent = 10;  // verify a key that they read
  int as_of_percent = 3;    // read the past
};

// The last transaction reads all keys after everything else is over.
History RandomHistory(uint64_t seed, const ToyOptions& options);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_TOY_STORE_H_
