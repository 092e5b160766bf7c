// SPDX-License-Identifier: Apache-2.0

// Column names that are reserved for Percolator. They begin with a zero byte, which users' columns may not.

#ifndef PERCOLATOR_TXN_COLUMNS_H_
#define PERCOLATOR_TXN_COLUMNS_H_

#include <optional>
#include <string>
#include <string_view>

#include "src/base/coding.h"

namespace percolator {

inline bool IsReservedColumn(std::string_view column) { return !column.empty() && column.front() == '\0'; }

// Family write, at start_ts: the transaction that started then was rolled back in this row, in all its cells. It is a
// separate column, so that a marker is not taken for a newer write of a cell and does not hide one, and so that one
// read per row finds it.
inline const std::string& RollbackColumn() {
  static const std::string* const name = new std::string(std::string_view("\0rollback", 9));
  return *name;
}

// Family notify, at start_ts: a mark that exists as long as the lock of `column` at start_ts. It is a separate column,
// so that the removal of the final marks of `column` up to a timestamp leaves it alone.
inline std::string PendingColumn(std::string_view column) {
  std::string name(std::string_view("\0p", 2));
  name.append(column);
  return name;
}
// The inverse. Returns nullopt if it is not such a column.
inline std::optional<std::string_view> ColumnOfPending(std::string_view pending) {
  if (!pending.starts_with(std::string_view("\0p", 2))) return std::nullopt;
  return pending.substr(2);
}

// An ordinary cell in the row of the observed one: the timestamp up to which `observer` has seen `column`
// (src/observe/run.h).
inline std::string AckColumn(std::string_view column, std::string_view observer) {
  std::string name(std::string_view("\0ack", 4));
  AppendOrderedString(&name, column);
  name.append(observer);
  return name;
}
// Returns the observed column of an acknowledgement, or nullopt if it is not one.
inline std::optional<std::string> ColumnOfAck(std::string_view ack) {
  if (!ack.starts_with(std::string_view("\0ack", 4))) return std::nullopt;
  ack.remove_prefix(4);
  std::string column;
  if (!ConsumeOrderedString(&ack, &column)) return std::nullopt;
  return column;
}

// Percolator's own table, for the state of the cluster as a whole (src/observe).
inline constexpr std::string_view kSystemTable = "_percolator";

}  // namespace percolator

#endif  // PERCOLATOR_TXN_COLUMNS_H_
