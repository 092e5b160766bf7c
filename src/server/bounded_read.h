// SPDX-License-Identifier: Apache-2.0

// Reads of rows whose size is unknown. A row of up to 1 MiB is read at once. A larger one is read again with a larger limit,
// and counted in the memory of requests.

#ifndef PERCOLATOR_SERVER_BOUNDED_READ_H_
#define PERCOLATOR_SERVER_BOUNDED_READ_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/server/requests.h"

namespace percolator {

// The limit of a row.
inline constexpr size_t kMaxRowReadBytes = size_t{64} << 20;

// Returns one row, which is counted in `memory` as long as `share` lives, unless `memory` is null. Returns ResourceExhausted
// if the row is too large, and Unavailable if too little of the memory is left.
absl::StatusOr<Row> ReadBounded(Store* store, RequestMemory* memory, RowRead read, RequestMemory::Share* share);
// The same for a page of rows.
absl::StatusOr<ScanPage> ScanBounded(Store* store, RequestMemory* memory, ScanRequest scan,
                                     RequestMemory::Share* share);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BOUNDED_READ_H_
