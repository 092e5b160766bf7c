// SPDX-License-Identifier: Apache-2.0

// The value types of percolator/types.h and percolator/column.h.

#include "percolator/types.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "percolator/column.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

std::string Escaped(std::string_view bytes) { return absl::CHexEscape(absl::string_view(bytes.data(), bytes.size())); }

}  // namespace

std::string ToString(CellView cell) {
  return StrCat(Escaped(cell.table), "/", Escaped(cell.row), "/", Escaped(cell.column));
}

std::ostream& operator<<(std::ostream& os, const CellName& cell) { return os << ToString(cell); }

RowRange RowRange::Single(std::string_view key) {
  std::string start(key);
  std::string limit = start + '\0';
  return {std::move(start), std::move(limit)};
}

RowRange RowRange::Prefix(std::string_view prefix) {
  // The limit is the prefix up to its last byte below 0xff, with that byte increased by one.
  std::string limit(prefix);
  while (!limit.empty() && limit.back() == '\xff') limit.pop_back();
  if (limit.empty()) return {std::string(prefix), std::nullopt};
  limit.back() = static_cast<char>(limit.back() + 1);
  return {std::string(prefix), std::move(limit)};
}

RowRange RowRange::After(std::string_view key) const {
  RowRange rest = *this;
  std::string next(key);
  next.push_back('\0');
  if (rest.start < next) rest.start = std::move(next);
  return rest;
}

RowRange RowRange::Before(std::string_view key) const {
  RowRange rest = *this;
  if (!rest.limit.has_value() || key < *rest.limit) rest.limit = std::string(key);
  return rest;
}

absl::Status internal::DecodeError(CellView cell, size_t bytes) {
  return absl::DataLossError(
      StrCat("cannot decode the value of ", ToString(cell), ": ", bytes, " bytes that are not of its column's type"));
}

}  // namespace percolator
