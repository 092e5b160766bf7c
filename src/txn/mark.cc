#include "src/txn/mark.h"

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
  if (absl::Status s = ConsumeRecordVersion(kMarkRecord, &bytes); !s.ok()) return s;
  Mark mark;
  if (!ConsumeFixed32(&bytes, &mark.depth) || !bytes.empty()) return CorruptRecord(kMarkRecord);
  return mark;
}

}  // namespace percolator
