#include "percolator/inspect.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "src/base/strings.h"
#include "src/txn/lock.h"
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

std::string DescribeRecord(std::string_view bytes) {
  const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(bytes);
  if (!record.ok()) return std::string(record.status().message());
  return StrCat(WriteKindName(record->kind), ValueOf(record->value), ", started ", record->start_ts.ToString());
}

}  // namespace

std::string DescribeCell(const Cell& cell) {
  switch (cell.family) {
    case Family::kLock:
      return DescribeLock(cell.value);
    case Family::kWrite:
      return DescribeRecord(cell.value);
    case Family::kData:
    case Family::kNotify:
      return Shown(cell.value);
  }
  return Shown(cell.value);
}

}  // namespace percolator
