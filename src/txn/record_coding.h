// SPDX-License-Identifier: Apache-2.0

// The common parts of the encodings of lock.h and write_record.h.

#ifndef PERCOLATOR_TXN_RECORD_CODING_H_
#define PERCOLATOR_TXN_RECORD_CODING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "percolator/spi/store.h"
#include "percolator/timestamp.h"

namespace percolator {

inline constexpr uint8_t kRecordVersion = 1;
// Versions up to this one are reserved for future formats. A record that begins with a larger number is damaged, or was
// not written by Percolator.
inline constexpr uint8_t kLastRecordVersion = 15;
inline constexpr uint8_t kHasValue = 1;

// Consumes the version.
absl::Status ConsumeRecordVersion(std::string_view what, std::string_view* in);
// Consumes the version, kind and flags. `what` names the record in errors.
absl::Status ConsumeRecordHead(std::string_view what, uint8_t allowed_flags, std::string_view* in, uint8_t* kind,
                               uint8_t* flags);
bool ConsumeTimestamp(std::string_view* in, Timestamp* ts);
absl::Status CorruptRecord(std::string_view what);

// Returns an error of decoding `cell`, with the cell's place and the next step added to its text. Ignores the cell's
// value.
absl::Status AtCell(const absl::Status& error, std::string_view table, std::string_view row, const Cell& cell);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_RECORD_CODING_H_
