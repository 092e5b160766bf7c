// SPDX-License-Identifier: Apache-2.0

// Garbage collection: removes versions that no snapshot can see any more.
//
// Order matters (G2, G4):
//
//   1. choose the safe point P: oracle time less the retention, and below every open snapshot;
//   2. publish P: from then on the store refuses locks at or below it, and reads below it are errors;
//   3. resolve every lock at or below P: afterwards no lock needs the verdicts of transactions that started there;
//   4. drop, per cell, every version at or below P but the newest, and that too if it is a delete; and verify records and
//      rollback markers at or below P.
//
// A crash between any two mutations leaves less garbage, and no other trace: a new run begins with 1.

#ifndef PERCOLATOR_TXN_GC_H_
#define PERCOLATOR_TXN_GC_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/txn/environment.h"
#include "src/txn/lock.h"

namespace percolator {

// Step 1. Returns a timestamp that is not below the store's safe point.
absl::StatusOr<Timestamp> ChooseSafePoint(Environment& env);

// Steps 2 to 4 for all tables. Returns Cancelled as soon as `stop` returns true.
absl::Status CollectGarbage(Environment& env, Timestamp safe_point, const std::function<bool()>& stop);

// Resolves the locks of a table that started at or below `ts` and satisfy `which`, also those of live owners.
absl::Status ResolveAllLocks(Environment& env, const std::string& table, Timestamp ts,
                             const std::function<bool(const FoundLock&)>& which, const std::function<bool()>& stop);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_GC_H_
