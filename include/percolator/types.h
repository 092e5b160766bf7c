// SPDX-License-Identifier: Apache-2.0

// Names and small value types that the whole API shares.

#ifndef PERCOLATOR_TYPES_H_
#define PERCOLATOR_TYPES_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "percolator/timestamp.h"

namespace percolator {

using Duration = std::chrono::microseconds;

// Identifies a process of a cluster. Never used twice.
using SessionId = uint64_t;

// A CellName that does not own its strings, for parameters. Spell out the fields where the order is
// not obvious: t.Get({.table = "pages", .row = url, .column = "title"}).
struct CellView {
  std::string_view table;
  std::string_view row;
  std::string_view column;
};

// Identifies a cell.
struct CellName {
  std::string table;
  std::string row;
  std::string column;

  // NOLINTNEXTLINE(google-explicit-constructor): like std::string
  operator CellView() const { return {table, row, column}; }
  friend auto operator<=>(const CellName&, const CellName&) = default;
};
// Returns "table/row/column". Bytes that are not printable are escaped.
std::string ToString(CellView cell);
std::ostream& operator<<(std::ostream& os, const CellName& cell);

// The row keys in [start, limit). Without a limit, the range ends with the table. The default is
// every row.
struct RowRange {
  std::string start = {};
  std::optional<std::string> limit = {};

  static RowRange All() { return {}; }
  static RowRange Single(std::string_view key);
  static RowRange Prefix(std::string_view prefix);

  // Returns the part of this range after (before) `key`, without `key`. Resumes a scan after the
  // last row it returned.
  RowRange After(std::string_view key) const;
  RowRange Before(std::string_view key) const;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Declares properties of a table's columns. A table also takes columns that are not declared; they
// hold values.
struct TableSchema {
  // Columns that hold no values and can only be notified (percolator/observer.h).
  std::vector<std::string> notify_only_columns = {};
};

}  // namespace percolator

#endif  // PERCOLATOR_TYPES_H_
