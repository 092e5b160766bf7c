// SPDX-License-Identifier: Apache-2.0

// Conflict: the evidence in the error of a transaction that lost against another one. Programs that
// only run the transaction again do not need it.

#ifndef PERCOLATOR_CONFLICT_H_
#define PERCOLATOR_CONFLICT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "percolator/types.h"

namespace percolator {

// Why a transaction could not commit.
struct Conflict {
  enum class Kind : uint8_t {
    kNewerWrite = 0,  // another transaction committed a write to the cell after this one started
    kLocked = 1,      // another transaction, which seems to be alive, holds the cell's lock
    kRolledBack = 2,  // another client rolled this transaction back because its lease had expired
  };
  Kind kind = Kind::kNewerWrite;
  CellName cell;
  Timestamp start_ts;         // of the transaction that failed
  Timestamp other_start_ts;   // of the other transaction; zero if unknown
  Timestamp other_commit_ts;  // kNewerWrite: of the other transaction

  friend bool operator==(const Conflict&, const Conflict&) = default;
};

// Returns the evidence that `status` carries, or nullopt if it carries none.
std::optional<Conflict> GetConflict(const absl::Status& status);

}  // namespace percolator

#endif  // PERCOLATOR_CONFLICT_H_
