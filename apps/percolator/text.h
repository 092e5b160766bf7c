// Bytes, times and durations as people read and type them.
//
// BYTES      Printable text as it is; a backslash as \\, line feed, return and tab as \n \r \t, and every byte that is not
//            printable UTF-8 as \xHH. What is shown can be typed: Unescaped(Escaped(bytes)) is bytes again.
// TIMES      The number of a Timestamp, 2026-11-15T10:00:00Z (with or without a fraction of a second), or a duration ago:
//            -5m.
// DURATIONS  A number and a unit, us ms s m h d; several of them one after another: 1h30m.

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
// kInvalidArgument: a backslash that begins none of the above.
absl::StatusOr<std::string> Unescaped(std::string_view text);
// At most so many characters of it, and if that is not all, how long it is.
std::string EscapedShort(std::string_view bytes, size_t most);

// Whether JSON can hold the bytes as a string.
bool IsUtf8(std::string_view bytes);
// How many characters the text takes on a terminal: code points, as good as it gets without tables of widths.
size_t WidthOf(std::string_view text);

// TABLE/ROW/COLUMN, escaped.
std::string CellText(const CellName& cell);

// 2026-11-15T10:00:00.123456Z
std::string TimeText(Timestamp ts);
// The two largest units that count: "3d 4h", "5m 12s", "1.2s", "30ms".
std::string AgeText(Duration age);

absl::StatusOr<Duration> ParseDuration(std::string_view text);
// `now` is what durations are counted back from.
absl::StatusOr<Timestamp> ParseTime(std::string_view text, Timestamp now);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_TEXT_H_
