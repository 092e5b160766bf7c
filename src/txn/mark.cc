// SPDX-License-Identifier: Apache-2.0

#include "src/txn/mark.h"

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/txn/record_coding.h"

namespace percolator {
namespace {

constexpr std::string_view kMarkRecord = "notification";

}  // namespace

std::string EncodeMark(const Mark& mark) {
  std::string out(1, static_cast<char>(kRecordVersion));
  AppendFixed32(&out, mark.depth);
  return out;
}

absl::StatusOr<Mark> DecodeMark(std::string_view bytes) {
  PERCOLATOR_RETURN_IF_ERROR(ConsumeRecordVersion(kMarkRecord, &bytes));
  Mark mark;
  if (!ConsumeFixed32(&bytes, &mark.depth) || !bytes.empty()) return CorruptRecord(kMarkRecord);
  return mark;
}

}  // namespace percolator
