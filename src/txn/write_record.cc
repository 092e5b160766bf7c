// SPDX-License-Identifier: Apache-2.0

#include "src/txn/write_record.h"

#include <utility>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/txn/record_coding.h"

namespace percolator {

std::string_view WriteKindName(WriteKind kind) {
  switch (kind) {
    case WriteKind::kPut:
      return "put";
    case WriteKind::kDelete:
      return "delete";
    case WriteKind::kVerify:
      return "verify";
    case WriteKind::kRollback:
      return "rollback";
  }
  return "unknown kind";
}

std::string EncodeWriteRecord(WriteKind kind, Timestamp start_ts, Timestamp verified,
                              const std::optional<std::string>& value) {
  std::string out;
  out.reserve(11 + (value.has_value() ? value->size() : 8));
  out.push_back(static_cast<char>(kRecordVersion));
  out.push_back(static_cast<char>(kind));
  out.push_back(static_cast<char>(value.has_value() ? kHasValue : 0));
  AppendFixed64(&out, start_ts.value());
  if (kind == WriteKind::kVerify) AppendFixed64(&out, verified.value());
  if (value.has_value()) out.append(*value);
  return out;
}

std::string EncodeWriteRecord(const WriteRecord& record) {
  return EncodeWriteRecord(record.kind, record.start_ts, record.verified, record.value);
}

namespace {

// Decodes all but the value; `in` is left at it. Sets `has_value`.
absl::StatusOr<WriteRecord> ConsumeWriteRecord(std::string_view* in, bool* has_value) {
  constexpr std::string_view kWhat = "write record";
  uint8_t kind = 0;
  uint8_t flags = 0;
  PERCOLATOR_RETURN_IF_ERROR(ConsumeRecordHead(kWhat, kHasValue, in, &kind, &flags));
  if (kind < static_cast<uint8_t>(WriteKind::kPut) || kind > static_cast<uint8_t>(WriteKind::kRollback)) {
    return CorruptRecord(kWhat);
  }
  WriteRecord record;
  record.kind = static_cast<WriteKind>(kind);
  *has_value = (flags & kHasValue) != 0;
  if (!ConsumeTimestamp(in, &record.start_ts)) return CorruptRecord(kWhat);
  if (record.kind == WriteKind::kVerify && !ConsumeTimestamp(in, &record.verified)) return CorruptRecord(kWhat);
  const bool well_formed = *has_value ? record.kind == WriteKind::kPut : in->empty();
  if (!well_formed) return CorruptRecord(kWhat);
  return record;
}

}  // namespace

absl::StatusOr<WriteRecord> DecodeWriteRecord(std::string_view bytes) {
  bool has_value = false;
  absl::StatusOr<WriteRecord> record = ConsumeWriteRecord(&bytes, &has_value);
  if (record.ok() && has_value) record->value.emplace(bytes);
  return record;
}

absl::StatusOr<WriteRecord> TakeWriteRecord(std::string bytes) {
  std::string_view rest = bytes;
  bool has_value = false;
  absl::StatusOr<WriteRecord> record = ConsumeWriteRecord(&rest, &has_value);
  if (record.ok() && has_value) {
    bytes.erase(0, bytes.size() - rest.size());
    record->value.emplace(std::move(bytes));
  }
  return record;
}

}  // namespace percolator
