// What the encodings of lock.h and write_record.h have in common.

#ifndef PERCOLATOR_TXN_RECORD_CODING_H_
#define PERCOLATOR_TXN_RECORD_CODING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "percolator/timestamp.h"

namespace percolator {

inline constexpr uint8_t kRecordVersion = 1;
// Versions up to this one are kept for formats to come. A record that begins with a larger number is damaged, or was never
// written by Percolator.
inline constexpr uint8_t kLastRecordVersion = 15;
inline constexpr uint8_t kHasValue = 1;

// Takes the version off the front.
absl::Status ConsumeRecordVersion(std::string_view what, std::string_view* in);
// Takes the version, kind and flags off the front. `what` names the record in errors.
absl::Status ConsumeRecordHead(std::string_view what, uint8_t allowed_flags, std::string_view* in, uint8_t* kind,
                               uint8_t* flags);
bool ConsumeTimestamp(std::string_view* in, Timestamp* ts);
absl::Status CorruptRecord(std::string_view what);

// An error of decoding `cell`, with the place of the cell and what to do added to its text. The cell's value is not looked at.
absl::Status AtCell(const absl::Status& error, std::string_view table, std::string_view row, const Cell& cell);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_RECORD_CODING_H_
