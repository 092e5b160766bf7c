// SPDX-License-Identifier: Apache-2.0

// Oracle: issues timestamps.
//
// O1  Every timestamp is unique, and greater than every timestamp whose request was answered before
//     this request was made, in any process, across restarts and changes of leader.
// O2  No timestamp at or above the durable bound is issued.
// O3  A restarted oracle begins at or above that bound.
//
// Values are max(last + 1, microseconds since 2025-01-01 UTC): see percolator/timestamp.h.
//
// Implementations: in process, with durable ranges in a file; and a service shared by many
// processes, whose client keeps one request in flight and shares it among all waiting threads.

#ifndef PERCOLATOR_SPI_ORACLE_H_
#define PERCOLATOR_SPI_ORACLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "percolator/timestamp.h"

namespace percolator {

class Oracle {
 public:
  virtual ~Oracle() = default;

  // Returns a new timestamp. Blocks until there is one. Returns Unavailable if no oracle could be
  // reached.
  absl::StatusOr<Timestamp> GetTimestamp() { return GetTimestamps(1); }

  // Draws `count` consecutive timestamps and returns the first.
  // REQUIRES: 1 <= count <= kMaxCount.
  virtual absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) = 0;
  static constexpr uint32_t kMaxCount = 1 << 20;

  // Same, if the oracle can answer from memory, without waiting for a disk or a network. Otherwise
  // returns nullopt, which an oracle may always do.
  virtual std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t /*count*/) {
    return std::nullopt;
  }
};

}  // namespace percolator

#endif  // PERCOLATOR_SPI_ORACLE_H_
