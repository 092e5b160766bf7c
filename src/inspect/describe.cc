// SPDX-License-Identifier: Apache-2.0

#include <string_view>

#include "absl/strings/escaping.h"
#include "percolator/inspect.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

constexpr size_t kShownBytes = 60;

std::string Shown(std::string_view value) {
  const std::string_view start = value.substr(0, kShownBytes);
  std::string text = absl::CHexEscape(absl::string_view(start.data(), start.size()));
  if (start.size() < value.size()) text += StrCat("... (", value.size(), " bytes)");
  return text;
}

std::string ValueOf(const std::optional<std::string>& value) {
  return value.has_value() ? StrCat(" ", Shown(*value)) : std::string();
}

std::string DescribeLock(std::string_view bytes) {
  const absl::StatusOr<Lock> lock = DecodeLock(bytes);
  if (!lock.ok()) return std::string(lock.status().message());
  std::string text = "primary";
  if (lock->primary.has_value()) {
    text += StrCat(" at ", lock->primary->table, "/", Shown(lock->primary->row), "/", Shown(lock->primary->column));
  }
  return StrCat(text, ", ", WriteKindName(lock->kind), ValueOf(lock->value));
}

// Describes an acknowledgement: see src/observe/ack.h.
std::string DescribeAck(std::string_view bytes) {
  if (bytes.empty()) return "to be run again";
  uint64_t seen = 0;
  return ConsumeFixed64(&bytes, &seen) && bytes.empty() ? StrCat("seen up to ", seen) : "no acknowledgement";
}

std::string DescribeRecord(std::string_view column, std::string_view bytes) {
  const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(bytes);
  if (!record.ok()) return std::string(record.status().message());
  if (ColumnOfAck(column).has_value() && record->value.has_value()) {
    return StrCat(DescribeAck(*record->value), ", started ", record->start_ts.ToString());
  }
  return StrCat(WriteKindName(record->kind), ValueOf(record->value), ", started ", record->start_ts.ToString());
}

std::string DescribeMark(std::string_view bytes) {
  const absl::StatusOr<Mark> mark = DecodeMark(bytes);
  if (!mark.ok()) return std::string(mark.status().message());
  if (mark->depth == 0) return "changed";
  return StrCat("changed, ", mark->depth, mark->depth == 1 ? " observer" : " observers", " down the chain");
}

}  // namespace

std::string DescribeCell(const Cell& cell) {
  switch (cell.family) {
    case Family::kLock:
      return DescribeLock(cell.value);
    case Family::kWrite:
      return DescribeRecord(cell.column, cell.value);
    case Family::kNotify:
      return DescribeMark(cell.value);
    case Family::kData:
      break;
  }
  return Shown(cell.value);
}

std::string_view BadCellKindName(BadCell::Kind kind) {
  switch (kind) {
    case BadCell::Kind::kDamaged:
      return "damaged";
    case BadCell::Kind::kNewerFormat:
      return "newer-format";
    case BadCell::Kind::kMissingData:
      return "missing-data";
    case BadCell::Kind::kMisplaced:
      return "misplaced";
    case BadCell::Kind::kImpossible:
      return "impossible";
    case BadCell::Kind::kFuture:
      return "future";
    case BadCell::Kind::kAbandoned:
      return "abandoned";
  }
  return "?";
}

std::string DescribeColumn(std::string_view column) {
  if (column == RollbackColumn()) return "[rolled back]";
  if (const auto pending = ColumnOfPending(column)) return StrCat("[", Shown(*pending), " pending]");
  if (const auto observed = ColumnOfAck(column)) {
    const std::string_view observer = column.substr(AckColumn(*observed, "").size());
    return StrCat("[", Shown(*observed), " seen by ", Shown(observer), "]");
  }
  return Shown(column);
}

}  // namespace percolator
