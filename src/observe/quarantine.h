// Quarantine: notifications whose observer keeps failing, out of the way and kept (see percolator/observer.h).
//
// An entry is a cell of the system table: row "quarantine/OBSERVER", column the name of the cell (table, row and column, each
// an ordered string; if that is long, its beginning and a hash of it), value:
//
//   entry := version attempts since table row column error      version 01; attempts fixed32; since fixed64: the S of the
//                                              transaction that made it, and its acknowledgement's; the name of the
//                                              cell: three ordered strings; error: the rest

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

// The value of the entry's cell; the observer's name is in its row.
std::string EncodeQuarantined(const Quarantined& entry);
// kDataLoss: no entry. kFailedPrecondition: of a newer format.
absl::StatusOr<Quarantined> DecodeQuarantined(std::string_view observer, std::string_view bytes);

// Puts an observer's notification into quarantine, of which a run that started at `tried_at` has failed. The acknowledgement
// is written as by a run that commits, so the cell is clean, and in the same transaction an entry. Returns the timestamp at
// which the observer counts as done.
// N1: a change after `tried_at` was never tried, so it does not go to quarantine. Strong: kAborted. Weak: its mark stays.
absl::StatusOr<Timestamp> Quarantine(Engine* engine, const ObserverInfo& observer, const CellName& cell,
                                     Timestamp tried_at, int attempts, const absl::Status& error);
absl::StatusOr<std::vector<Quarantined>> ListQuarantined(Engine* engine);
// Takes an entry out, and lets the observer run again. kNotFound: there is no such entry.
absl::Status ReplayQuarantined(Engine* engine, const ObserverInfo& observer, const Quarantined& entry);
// The same with the observer that the cluster has now.
absl::Status ReplayQuarantined(Engine* engine, const Quarantined& entry);
// Takes it out for good.
absl::Status DropQuarantined(Engine* engine, const Quarantined& entry);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_QUARANTINE_H_
