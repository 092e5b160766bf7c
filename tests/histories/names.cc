// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/names.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator {

CellMap::CellMap(Layout layout, const std::vector<std::vector<std::string>>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string table = layout == Layout::kTwoTables ? StrCat("table", i + 1) : "table";
    const std::string row = layout == Layout::kTwoRows ? StrCat("row", i + 1) : "row";
    if (std::find(tables_.begin(), tables_.end(), table) == tables_.end()) tables_.push_back(table);
    for (const std::string& name : groups[i]) cells_[name] = {table, row, name};
  }
}

const CellName* CellMap::Find(const std::string& name) const {
  const auto it = cells_.find(name);
  return it == cells_.end() ? nullptr : &it->second;
}

std::string CellMap::NameOf(const CellName& cell) const {
  if (const std::optional<std::string> observed = ColumnOfAck(cell.column)) {
    const std::string observer = cell.column.substr(AckColumn(*observed, "").size());
    return StrCat("ack of ", NameOf({cell.table, cell.row, *observed}), " by ", observer);
  }
  const CellName* const known = Find(cell.column);
  return known != nullptr && *known == cell ? cell.column : StrCat(cell.table, "/", cell.row, "/", cell.column);
}

std::string CellMap::NameOfRow(const std::string& table, const std::string& row) {
  return table == "table" ? row : StrCat(table, "/", row);
}

absl::Status Stamps::Number(Timestamp ts, std::optional<int> number) {
  if (numbers_.contains(ts)) return absl::OkStatus();
  if (!numbers_.empty() && ts < numbers_.rbegin()->first) return absl::OkStatus();
  const int last = numbers_.empty() ? 0 : numbers_.rbegin()->second;
  if (number.has_value() && *number <= last) {
    return absl::InvalidArgumentError(StrCat("number ", *number, " is not after ", last));
  }
  numbers_[ts] = number.value_or(last + 1);
  return absl::OkStatus();
}

std::string Stamps::NumberText(Timestamp ts) const {
  const auto after = numbers_.upper_bound(ts);
  if (after == numbers_.begin()) return ts == Timestamp() ? "0" : "0+";
  const auto& [known, number] = *std::prev(after);
  return StrCat(number, known == ts ? "" : "+");
}

std::string Stamps::Text(Timestamp ts) const { return "@" + NumberText(ts); }

std::optional<Timestamp> Stamps::Find(int number) const {
  for (const auto& [ts, its_number] : numbers_) {
    if (its_number == number) return ts;
  }
  return std::nullopt;
}

std::string Stamps::TransactionName(Timestamp start_ts) const {
  const auto it = transactions_.find(start_ts);
  return it == transactions_.end() ? Text(start_ts) : it->second;
}

}  // namespace percolator
