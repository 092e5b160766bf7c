// SPDX-License-Identifier: Apache-2.0

#include "src/observe/ack.h"

#include <cstdint>
#include <string_view>

#include "src/base/coding.h"
#include "src/txn/columns.h"

namespace percolator {

CellName AckCell(const ObserverInfo& observer, const CellName& cell) {
  return {cell.table, cell.row, AckColumn(cell.column, observer.name)};
}

std::string EncodeAck(Timestamp start_ts) {
  std::string out;
  AppendFixed64(&out, start_ts.value());
  return out;
}

absl::StatusOr<bool> IsDirty(const Version& observed, const Version& ack) {
  if (!ack.value.has_value()) return observed.commit_ts != Timestamp();
  if (ack.value->empty()) return true;
  std::string_view bytes = *ack.value;
  uint64_t start_ts = 0;
  if (!ConsumeFixed64(&bytes, &start_ts) || !bytes.empty()) {
    return absl::DataLossError("invalid acknowledgement: its bytes are damaged");
  }
  return observed.commit_ts > Timestamp(start_ts);
}

}  // namespace percolator
