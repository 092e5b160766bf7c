// SPDX-License-Identifier: Apache-2.0

// String functions for std::string_view.
//
// Debian's Abseil is built with its own string_view, which does not convert to or from the standard one. These functions
// replace the string functions of Abseil.

#ifndef PERCOLATOR_BASE_STRINGS_H_
#define PERCOLATOR_BASE_STRINGS_H_

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace percolator {

inline std::string_view ToPiece(std::string_view piece) { return piece; }
inline std::string_view ToPiece(const char* piece) { return piece; }
inline std::string_view ToPiece(const std::string& piece) { return piece; }
inline std::string_view ToPiece(absl::string_view piece) { return {piece.data(), piece.size()}; }
template <std::integral Number>
std::string ToPiece(Number number) {
  return std::to_string(number);
}

// Concatenates text and integers.
template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  (out.append(ToPiece(pieces)), ...);
  return out;
}

// Returns `bytes` in quotation marks, for error messages. Escapes bytes that are not printable, and truncates long text.
inline std::string Quoted(std::string_view bytes) {
  constexpr size_t kMaxBytes = 200;
  const std::string_view shown = bytes.substr(0, kMaxBytes);
  return StrCat("\"", absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
                shown.size() < bytes.size() ? "...\"" : "\"");
}

// Removes `prefix` from the front of `*in`. Returns false if `*in` does not begin with it.
inline bool ConsumePrefix(std::string_view* in, std::string_view prefix) {
  if (!in->starts_with(prefix)) return false;
  in->remove_prefix(prefix.size());
  return true;
}

// Allows lookups by std::string_view in hash maps with std::string keys:
// absl::flat_hash_map<std::string, V, StringHash, std::equal_to<>>.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return absl::HashOf(s); }
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_STRINGS_H_
