// Column names that belong to Percolator. They begin with a zero byte, which is refused to users.

#ifndef PERCOLATOR_TXN_COLUMNS_H_
#define PERCOLATOR_TXN_COLUMNS_H_

#include <string>
#include <string_view>

namespace percolator {

inline bool IsReservedColumn(std::string_view column) { return !column.empty() && column.front() == '\0'; }

// Family write, at start_ts: the transaction that started then was rolled back in this row, whichever of its cells are
// there. A column of its own, so that a marker is neither taken for a newer write of a cell nor hides one (lessons 10,
// 20), and one look per row finds it.
inline const std::string& RollbackColumn() {
  static const std::string* const name = new std::string(std::string_view("\0rollback", 9));
  return *name;
}

}  // namespace percolator

#endif  // PERCOLATOR_TXN_COLUMNS_H_
