// SPDX-License-Identifier: Apache-2.0

// Marks: a cell has changed, and observers have to run. Family notify.
//
//   mark    := version depth
//   version := 01                a larger number: written by a newer Percolator, refused
//   depth   := fixed32           how many observers, one after another, led to this change: 0 if none
//
// A final mark is in the cell's own column, at the commit timestamp of the change. A pending one is in PendingColumn,
// at the start timestamp, and stands beside a lock. The client that replaces the lock by a record also replaces the
// pending mark by a final one; a client that rolls the lock back removes it (N1, N8). A client that dies leaves no
// mark, a pending mark beside its lock, or a final mark.

#ifndef PERCOLATOR_TXN_MARK_H_
#define PERCOLATOR_TXN_MARK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace percolator {

struct Mark {
  uint32_t depth = 0;
};

std::string EncodeMark(const Mark& mark);
// Returns DataLoss if `bytes` are not a mark, and FailedPrecondition if they are of a newer format.
absl::StatusOr<Mark> DecodeMark(std::string_view bytes);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_MARK_H_
