// SPDX-License-Identifier: Apache-2.0

// Quarantine: keeps notifications whose observer keeps failing, so that they do not delay others (see
// percolator/observer.h).
//
// An entry is a cell of the system table: row "quarantine/OBSERVER", column the name of the cell (table, row and
// column, each an ordered string; a long name is cut, and a hash of it added), value:
//
//   entry := version attempts since table row column error      version 01; attempts fixed32; since fixed64: the S of the
//                                              transaction that made the entry and its acknowledgement; the name of
//                                              the cell: three ordered strings; error: the rest

#ifndef PERCOLATOR_OBSERVE_QUARANTINE_H_
#define PERCOLATOR_OBSERVE_QUARANTINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "src/observe/registry.h"
#include "src/txn/engine.h"

namespace percolator {

// Returns the value of the entry's cell. The observer's name is in its row.
std::string EncodeQuarantined(const Quarantined& entry);
// Returns DataLoss if `bytes` are not an entry, and FailedPrecondition if they are of a newer format.
absl::StatusOr<Quarantined> DecodeQuarantined(std::string_view observer, std::string_view bytes);

// Puts a notification into quarantine after a run of the observer that started at `tried_at` has failed. One
// transaction writes the acknowledgement, as a run that commits would, so that the cell is clean, and the entry.
// Returns the timestamp at which the observer counts as done. N1: a change after `tried_at` was never tried, so it does
// not go to quarantine. If the observer is strong, this returns Aborted; if it is weak, the mark stays.
absl::StatusOr<Timestamp> Quarantine(Engine* engine, const ObserverInfo& observer, const CellName& cell,
                                     Timestamp tried_at, int attempts, const absl::Status& error);
absl::StatusOr<std::vector<Quarantined>> ListQuarantined(Engine* engine);
// Removes an entry, and lets the observer run again. Returns NotFound if there is no such entry.
absl::Status ReplayQuarantined(Engine* engine, const ObserverInfo& observer, const Quarantined& entry);
// The same with the observer of that name that the cluster has now.
absl::Status ReplayQuarantined(Engine* engine, const Quarantined& entry);
// Removes an entry without another run of the observer.
absl::Status DropQuarantined(Engine* engine, const Quarantined& entry);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_QUARANTINE_H_
