// Oracle: hands out timestamps.
//
// O1  Every timestamp is unique, and greater than every timestamp whose request was answered before this request was
//     made, in whatever process, across restarts and changes of leader.
// O2  No timestamp is handed out at or above a durable bound, and a restart begins at that bound.
//
// Values are max(last + 1, microseconds since 2025-01-01 UTC): see percolator/timestamp.h.
//
// Implementations: in process, on a file with durable ranges; a service shared by many processes, whose client keeps one
// request in flight and lets all threads that wait share it.

#ifndef PERCOLATOR_ORACLE_H_
#define PERCOLATOR_ORACLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "percolator/timestamp.h"

namespace percolator {

class Oracle {
 public:
  virtual ~Oracle() = default;

  // A new timestamp. Blocks until there is one. kUnavailable: no oracle could be reached.
  absl::StatusOr<Timestamp> GetTimestamp() { return GetTimestamps(1); }

  // `count` new timestamps in a row; returns the first of them.
  // REQUIRES: 1 <= count <= kMaxCount.
  virtual absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) = 0;
  static constexpr uint32_t kMaxCount = 1 << 20;

  // The same, if it can be answered from memory, without waiting for a disk, a network, or somebody who does; else nothing,
  // which is all that an oracle has to say to it.
  virtual std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t /*count*/) { return std::nullopt; }
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_H_
