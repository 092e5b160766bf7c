// SPDX-License-Identifier: Apache-2.0

// The cells of the store below transactions: what percolator/inspect.h shows, and what a Store
// (percolator/spi/store.h) holds.

#ifndef PERCOLATOR_RAW_CELL_H_
#define PERCOLATOR_RAW_CELL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "percolator/timestamp.h"

namespace percolator {

// The families of every table: figure 5 of the paper. Each is kept apart on disk, so that scanning
// one does not read the others. These values are part of the formats in docs/format.md: do not
// change them.
enum class Family : uint8_t {
  kData = 0,    // long values, at the start timestamp of the transaction that wrote them
  kLock = 1,    // locks of uncommitted transactions, at their start timestamp
  kWrite = 2,   // committed writes, at their commit timestamp
  kNotify = 3,  // marks of cells whose observers have to run
};
inline constexpr int kFamilyCount = 4;

// Returns "data", "lock", "write" or "notify".
std::string_view FamilyName(Family family);

// One version of one cell.
struct Cell {
  Family family = Family::kData;
  std::string column;
  Timestamp timestamp;
  std::string value;

  friend bool operator==(const Cell&, const Cell&) = default;
};

}  // namespace percolator

#endif  // PERCOLATOR_RAW_CELL_H_
