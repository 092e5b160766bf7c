// SPDX-License-Identifier: Apache-2.0

// The terms of texts and queries: words in any language.

#ifndef PERCOLATOR_APPS_WEBINDEX_TERMS_H_
#define PERCOLATOR_APPS_WEBINDEX_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace webindex {

inline constexpr size_t kLongestTerm = 64;  // bytes; the rest of a longer word is ignored

struct Term {
  std::string text;  // folded: compatibility forms, case and accents do not matter
  size_t begin = 0;  // position in the text, in bytes
  size_t end = 0;
};

// Returns the terms of a text of valid UTF-8, in its order. Breaks words as Unicode defines it (UAX 29). Numbers are words. Does
// not distinguish languages, so it does not stem.
std::vector<Term> TermsOf(std::string_view text);
// The same without the fast path for ASCII words. For tests.
std::vector<Term> TermsWithoutShortCut(std::string_view text);

// The number of occurrences of each term.
std::map<std::string, uint32_t> CountTerms(std::string_view text);

// Replaces every byte that is not UTF-8 by U+FFFD.
std::string ToValidUtf8(std::string_view text);

// The beginning of a text of valid UTF-8, cut between characters.
std::string_view CutAtCharacter(std::string_view text, size_t max_bytes);

// 128 bits of a hash that is the same on every machine and in every version.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 HashOf(std::string_view bytes);

// The same for bytes that come in pieces.
class Hasher {
 public:
  void Add(std::string_view bytes);
  Hash128 Finish();

 private:
  void AddWord(uint64_t word);

  Hash128 hash_;
  uint64_t length_ = 0;
  uint64_t word_ = 0;  // the last length_ % 8 bytes
};

// The SimHash of the pairs of neighbouring terms. The keys of similar texts differ in few bits.
uint64_t NearKeyOf(const std::vector<Term>& terms);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TERMS_H_
