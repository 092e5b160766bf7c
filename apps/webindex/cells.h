// Cells that hold messages, the rule for outputs that stay as they are, and the time that is written into messages.

#ifndef PERCOLATOR_APPS_WEBINDEX_CELLS_H_
#define PERCOLATOR_APPS_WEBINDEX_CELLS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/status.h"
#include "percolator/transaction.h"

namespace webindex {

using Value = std::optional<std::string>;  // of a cell; absent: it has none

inline percolator::CellName Cell(std::string_view table, std::string_view row, std::string_view column) {
  return {std::string(table), std::string(row), std::string(column)};
}

// The message in a value; an empty one, if there is none. kDataLoss: it is not one.
template <typename Message>
absl::StatusOr<Message> MessageIn(const Value& value) {
  Message message;
  if (value.has_value() && !message.ParseFromString(*value)) {
    return absl::DataLossError("a cell does not hold a " + message.GetTypeName());
  }
  return message;
}

// Writes or deletes the cell.
inline absl::Status Put(percolator::ReadWrite& t, std::string_view table, std::string_view row, std::string_view column,
                        const Value& value) {
  return value.has_value() ? t.Set(table, row, column, *value) : t.Delete(table, row, column);
}

// Makes a cell, which `was` is read from in the same transaction, hold `value`. One that holds it already is not written,
// because that would notify its observers of nothing, but verified: so no older run can overwrite it (pipeline.h, rule 1).
inline absl::Status PutOrVerify(percolator::ReadWrite& t, std::string_view table, std::string_view row,
                                std::string_view column, const Value& was, const Value& value) {
  return value == was ? t.Verify(table, row, column) : Put(t, table, row, column, value);
}

// The time of day.
inline int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_CELLS_H_
