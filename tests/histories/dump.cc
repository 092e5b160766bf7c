// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/dump.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "src/base/strings.h"
#include "src/txn/columns.h"

namespace percolator {
namespace {

constexpr size_t kFamilies = 4;  // data, lock, write, notify

// The content of a cell, for people.
std::optional<std::string> Legible(const CellName& name, const std::optional<std::string>& value,
                                   const Stamps& stamps) {
  if (!value.has_value() || !ColumnOfAck(name.column).has_value()) return value;
  return value->empty() ? "run again" : "seen " + stamps.Text(SeenBy(*value));
}

std::string KindText(WriteKind kind, const std::optional<std::string>& value) {
  std::string text(WriteKindName(kind));
  if (value.has_value()) text += " " + ValueText(*value);
  return text;
}

std::string VerifiedText(Timestamp verified, const Stamps& stamps) {
  return verified == Timestamp() ? " of nothing" : StrCat(" of ", stamps.NumberText(verified));
}

std::string LockText(const RawCell& cell, const CellMap& map, const Stamps& stamps) {
  const Lock& lock = *cell.lock;
  std::string text = KindText(lock.kind, Legible(cell.name, lock.value, stamps));
  if (lock.kind == WriteKind::kVerify) text += VerifiedText(lock.verified, stamps);
  text += lock.primary.has_value() ? StrCat(", primary ", map.NameOf(*lock.primary)) : ", primary";
  if (lock.refreshed > cell.timestamp) text += ", refreshed";
  return text;
}

std::string RecordText(const RawCell& cell, const Stamps& stamps) {
  const WriteRecord& record = *cell.record;
  if (record.kind == WriteKind::kRollback) return "rollback";
  std::string text = KindText(record.kind, Legible(cell.name, record.value, stamps));
  if (record.kind == WriteKind::kVerify) text += VerifiedText(record.verified, stamps);
  return StrCat(text, " ", stamps.Text(record.start_ts));
}

std::string ContentText(const RawCell& cell, const CellMap& map, const Stamps& stamps) {
  const std::string at = StrCat(stamps.NumberText(cell.timestamp), ": ");
  if (cell.lock.has_value()) return at + LockText(cell, map, stamps);
  if (cell.record.has_value()) return at + RecordText(cell, stamps);
  if (cell.mark.has_value()) {
    const std::string depth = cell.mark->depth == 0 ? "" : StrCat(", depth ", cell.mark->depth);
    return StrCat(at, cell.pending ? "pending" : "mark", depth);
  }
  return at + ValueText(cell.value);
}

// The lines of a cell: its versions in each family from the top, newest first, side by side.
using Line = std::array<std::string, 1 + kFamilies>;

void AddLines(const std::string& name, const std::array<std::vector<std::string>, kFamilies>& contents,
              std::vector<Line>* lines) {
  size_t height = 0;
  for (const auto& column : contents) height = std::max(height, column.size());
  for (size_t i = 0; i < height; ++i) {
    Line line{i == 0 ? name : ""};
    for (size_t f = 0; f < contents.size(); ++f) line[f + 1] = i < contents[f].size() ? contents[f][i] : "";
    lines->push_back(std::move(line));
  }
}

// Only the first `columns` columns.
std::string Aligned(const std::vector<Line>& lines, size_t columns) {
  std::array<size_t, std::tuple_size_v<Line>> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    for (size_t i = 0; i < columns; ++i) {
      out += (i == 0 ? "" : " | ") + line[i] + std::string(widths[i] - line[i].size(), ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

}  // namespace

std::string ValueText(const std::string& value) {
  const bool uniform = value.find_first_not_of(value.empty() ? '\0' : value[0]) == std::string::npos;
  if (value.size() > 20 && uniform) return StrCat(value.size(), "*", std::string(1, value[0]));
  return value.empty() ? "\"\"" : value;
}

std::string DumpText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  const bool has_marks = std::any_of(cells.begin(), cells.end(), [](const RawCell& c) { return c.mark.has_value(); });
  std::vector<Line> lines = {{"", "data", "lock", "write", "notify"}};
  for (size_t i = 0; i < cells.size();) {
    const CellName& name = cells[i].name;
    const bool markers = name.column == RollbackColumn();
    std::array<std::vector<std::string>, kFamilies> contents;
    for (; i < cells.size() && cells[i].name == name; ++i) {
      contents[static_cast<size_t>(cells[i].family)].push_back(ContentText(cells[i], map, stamps));
    }
    if (name.table == kSystemTable) continue;
    AddLines(markers ? CellMap::NameOfRow(name.table, name.row) : map.NameOf(name), contents, &lines);
  }
  return Aligned(lines, has_marks ? kFamilies + 1 : kFamilies);
}

std::string LocksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  std::string text;
  for (const RawCell& cell : cells) {
    if (!cell.lock.has_value()) continue;
    text += StrCat(text.empty() ? "" : ", ", map.NameOf(cell.name), " by ", stamps.TransactionName(cell.timestamp));
  }
  return text.empty() ? "none" : text;
}

std::string MarksText(const std::vector<RawCell>& cells, const CellMap& map, const Stamps& stamps) {
  std::string text;
  for (const RawCell& cell : cells) {
    if (!cell.mark.has_value()) continue;
    text += StrCat(text.empty() ? "" : ", ", map.NameOf(cell.name), cell.pending ? " pending " : " ",
                   stamps.Text(cell.timestamp));
  }
  return text.empty() ? "none" : text;
}

}  // namespace percolator
