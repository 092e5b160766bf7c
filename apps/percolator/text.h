// SPDX-License-Identifier: Apache-2.0

// Bytes, times and durations in the form that people read and type.
//
// BYTES      Printable text is unchanged. A backslash is \\; line feed, return and tab are \n \r \t; a byte that is not
//            printable UTF-8 is \xHH. Unescaped(Escaped(bytes)) == bytes.
// TIMES      The number of a Timestamp, 2026-11-15T10:00:00Z (with or without a fraction of a second), or a duration before
//            now: -5m.
// DURATIONS  A number with a unit, us ms s m h d, or several: 1h30m.

#ifndef PERCOLATOR_APPS_PERCOLATOR_TEXT_H_
#define PERCOLATOR_APPS_PERCOLATOR_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator::cli {

std::string Escaped(std::string_view bytes);
// Returns InvalidArgument if a backslash begins no escape.
absl::StatusOr<std::string> Unescaped(std::string_view text);
// The first characters, followed by the length in bytes if that is not all.
std::string EscapedShort(std::string_view bytes, size_t max_characters);

// Returns true if a JSON string can hold the bytes.
bool IsUtf8(std::string_view bytes);
// The width of the text on a terminal, estimated as its number of code points.
size_t WidthOf(std::string_view text);

// TABLE/ROW/COLUMN, escaped.
std::string CellText(const CellName& cell);

// 2026-11-15T10:00:00.123456Z
std::string TimeText(Timestamp ts);
// One or two units: "3d 4h", "5m 12s", "1.2s", "30ms".
std::string AgeText(Duration age);

absl::StatusOr<Duration> ParseDuration(std::string_view text);
// A duration is subtracted from `now`.
absl::StatusOr<Timestamp> ParseTime(std::string_view text, Timestamp now);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_TEXT_H_
