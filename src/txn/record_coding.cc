#include "src/txn/record_coding.h"

#include "src/base/coding.h"
#include "src/base/strings.h"

namespace percolator {

absl::Status CorruptRecord(std::string_view what) {
  return absl::DataLossError(StrCat("a ", what, " can't be understood: its bytes are damaged"));
}

absl::Status ConsumeRecordHead(std::string_view what, uint8_t allowed_flags, std::string_view* in, uint8_t* kind,
                               uint8_t* flags) {
  if (in->empty()) return CorruptRecord(what);
  const auto version = static_cast<uint8_t>((*in)[0]);
  if (version > kRecordVersion) {
    return absl::FailedPreconditionError(StrCat("a ", what, " has format ", version, ", this program knows up to ",
                                                kRecordVersion, ": use a newer one"));
  }
  if (version != kRecordVersion || in->size() < 3) return CorruptRecord(what);
  *kind = static_cast<uint8_t>((*in)[1]);
  *flags = static_cast<uint8_t>((*in)[2]);
  if ((*flags & ~allowed_flags) != 0) return CorruptRecord(what);
  in->remove_prefix(3);
  return absl::OkStatus();
}

bool ConsumeTimestamp(std::string_view* in, Timestamp* ts) {
  uint64_t value = 0;
  if (!ConsumeFixed64(in, &value)) return false;
  *ts = Timestamp(value);
  return true;
}

}  // namespace percolator
