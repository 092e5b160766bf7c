// SPDX-License-Identifier: Apache-2.0

// RowSource: the source of the rows of a RowScan (percolator/transaction.h).

#ifndef PERCOLATOR_TXN_ROW_SOURCE_H_
#define PERCOLATOR_TXN_ROW_SOURCE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/transaction.h"

namespace percolator::internal {

class RowSource {
 public:
  virtual ~RowSource() = default;

  // Returns the next row or an error, or nullopt at the end. The end follows an error.
  virtual std::optional<absl::StatusOr<ScannedRow>> Next() = 0;
  // Keeps the error of a row that could not be decoded, for FirstReadError.
  virtual void NoteError(const absl::Status& status) = 0;
};

}  // namespace percolator::internal

#endif  // PERCOLATOR_TXN_ROW_SOURCE_H_
