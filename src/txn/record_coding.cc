// SPDX-License-Identifier: Apache-2.0

#include "src/txn/record_coding.h"

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/strings.h"

namespace percolator {

absl::Status CorruptRecord(std::string_view what) {
  return absl::DataLossError(StrCat("invalid ", what, ": its bytes are damaged"));
}

absl::Status ConsumeRecordVersion(std::string_view what, std::string_view* in) {
  if (in->empty()) return CorruptRecord(what);
  const auto version = static_cast<uint8_t>(in->front());
  if (version > kRecordVersion && version <= kLastRecordVersion) {
    return absl::FailedPreconditionError(
        StrCat("a ", what, " has the newer format ", version, "; this version reads formats up to ", kRecordVersion));
  }
  if (version != kRecordVersion) return CorruptRecord(what);
  in->remove_prefix(1);
  return absl::OkStatus();
}

absl::Status ConsumeRecordHead(std::string_view what, uint8_t allowed_flags, std::string_view* in, uint8_t* kind,
                               uint8_t* flags) {
  PERCOLATOR_RETURN_IF_ERROR(ConsumeRecordVersion(what, in));
  if (in->size() < 2) return CorruptRecord(what);
  *kind = static_cast<uint8_t>((*in)[0]);
  *flags = static_cast<uint8_t>((*in)[1]);
  if ((*flags & ~allowed_flags) != 0) return CorruptRecord(what);
  in->remove_prefix(2);
  return absl::OkStatus();
}

bool ConsumeTimestamp(std::string_view* in, Timestamp* ts) {
  uint64_t value = 0;
  if (!ConsumeFixed64(in, &value)) return false;
  *ts = Timestamp(value);
  return true;
}

absl::Status AtCell(const absl::Status& error, std::string_view table, std::string_view row, const Cell& cell) {
  const auto escaped = [](std::string_view bytes) {
    return absl::CHexEscape(absl::string_view(bytes.data(), bytes.size()));
  };
  return absl::Status(error.code(),
                      StrCat(error.message(), " (table ", table, ", row \"", escaped(row), "\", column \"",
                             escaped(cell.column), "\", family ", FamilyName(cell.family), ", timestamp ",
                             cell.timestamp.ToString(), "); `percolator check` lists all such cells"));
}

}  // namespace percolator
