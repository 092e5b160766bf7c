// SPDX-License-Identifier: Apache-2.0

#include "tests/testing/store_text.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace percolator {
namespace {

// Name of a family that may come from a malformed request.
std::string NameOf(Family family) {
  const int number = static_cast<int>(family);
  return number < kFamilyCount ? std::string(FamilyName(family)) : absl::StrCat("family", number);
}

std::string ToText(const CellRange& cell) {
  return absl::StrCat(NameOf(cell.family), ":", absl::CHexEscape(cell.column), ToText(cell.range));
}

template <typename T>
std::string Join(const std::vector<T>& things) {
  return absl::StrJoin(things, " ", [](std::string* out, const T& thing) { *out += ToText(thing); });
}

std::string ToText(const Condition& condition) {
  static constexpr const char* kNames[] = {"none", "any", "all"};
  return absl::StrCat(kNames[static_cast<int>(condition.quantifier)], "(", Join(condition.cells), ")");
}

}  // namespace

std::string ToText(const Cell& cell) {
  return absl::StrCat(NameOf(cell.family), ":", absl::CHexEscape(cell.column), "@", cell.timestamp.ToString(), "=",
                      absl::CHexEscape(cell.value));
}

std::string ToText(const std::vector<Cell>& cells) { return Join(cells); }

std::string ToText(const Row& row) { return absl::StrCat(absl::CHexEscape(row.key), "{", ToText(row.cells), "}"); }

std::string ToText(const std::vector<Row>& rows) { return Join(rows); }

std::string ToText(const TimestampRange& range) {
  return absl::StrCat("[", range.from.ToString(), ",", range.until.ToString(), ")");
}

std::string ToText(const Selector& selector) {
  return absl::StrCat(NameOf(selector.family), ":",
                      selector.column.has_value() ? absl::CHexEscape(*selector.column) : "*", ToText(selector.range),
                      "newest", selector.newest);
}

std::string ToText(const RowRead& read) {
  return absl::StrCat("read ", read.table, " ", absl::CHexEscape(read.row), " ", Join(read.selectors));
}

std::string ToText(const ScanRequest& request) {
  return absl::StrCat(request.reverse ? "reverse scan " : "scan ", request.table, " [",
                      absl::CHexEscape(request.rows.start), ",",
                      request.rows.limit.has_value() ? absl::CHexEscape(*request.rows.limit) : "end", ") limit ",
                      request.row_limit, " ", Join(request.selectors));
}

std::string ToText(const Mutation& mutation) {
  const std::string cell =
      absl::StrCat(NameOf(mutation.family), ":", absl::CHexEscape(mutation.column), ToText(mutation.range));
  return mutation.kind == Mutation::Kind::kErase ? absl::StrCat("erase ", cell)
                                                 : absl::StrCat("set ", cell, "=", absl::CHexEscape(mutation.value));
}

std::string ToText(const RowMutation& mutation) {
  return absl::StrCat(
      "mutate ", mutation.table, " ", absl::CHexEscape(mutation.row), " if ", ToText(mutation.condition), " ",
      absl::StrJoin(mutation.mutations, ", ", [](std::string* out, const Mutation& m) { *out += ToText(m); }));
}

}  // namespace percolator
