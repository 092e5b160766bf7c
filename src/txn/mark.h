// Marks: that a cell has changed and observers have to run. Family notify.
//
//   mark    := version depth
//   version := 01                a larger number: written by a newer Percolator, refused
//   depth   := fixed32           how many observers, one after another, led to this change: 0 if none
//
// A final mark is in the cell's own column, at the commit timestamp of the change. A pending one is in PendingColumn, at the
// start timestamp, and stands beside a lock: if the transaction commits, whoever replaces the lock by a record replaces the
// pending mark by a final one, and if it is rolled back removes it (N1, N8). So whoever dies leaves either nothing, or a
// mark that leads to the stranded lock, or a final one.

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
// kDataLoss: no mark. kFailedPrecondition: of a newer format.
absl::StatusOr<Mark> DecodeMark(std::string_view bytes);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_MARK_H_
