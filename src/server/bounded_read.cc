// SPDX-License-Identifier: Apache-2.0

#include "src/server/bounded_read.h"

#include <utility>
#include <vector>

#include "percolator/status_macros.h"

namespace percolator {
namespace {

struct ReadStep {
  size_t row_bytes;
  size_t memory;  // for the row, and for the answer that is made of it
};
constexpr ReadStep kReadSteps[] = {
    {size_t{1} << 20, 0}, {size_t{8} << 20, size_t{16} << 20}, {kMaxRowReadBytes, 2 * kMaxRowReadBytes}};

// Calls `read` with the limit of each step until it is enough.
template <typename Result, typename Read>
absl::StatusOr<Result> InSteps(RequestMemory* memory, RequestMemory::Share* share, Read read) {
  absl::StatusOr<Result> result;
  for (const ReadStep& step : kReadSteps) {
    if (memory != nullptr && step.memory > 0) {
      *share = RequestMemory::Share();
      PERCOLATOR_RETURN_IF_ERROR(memory->Take(step.memory, share));
    }
    result = read(step.row_bytes);
    if (!absl::IsResourceExhausted(result.status())) break;
  }
  return result;
}

}  // namespace

absl::StatusOr<Row> ReadBounded(Store* store, RequestMemory* memory, RowRead read, RequestMemory::Share* share) {
  std::vector<RowRead> one = {std::move(read)};
  return InSteps<Row>(memory, share, [&](size_t max_bytes) -> absl::StatusOr<Row> {
    one.front().max_bytes = max_bytes;
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, store->Read(one));
    return std::move(rows.front());
  });
}

absl::StatusOr<ScanPage> ScanBounded(Store* store, RequestMemory* memory, ScanRequest scan,
                                     RequestMemory::Share* share) {
  return InSteps<ScanPage>(memory, share, [&](size_t max_bytes) {
    scan.max_row_bytes = max_bytes;
    return store->Scan(scan);
  });
}

}  // namespace percolator
