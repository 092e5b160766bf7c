// Words of a text, in any language: what the index is made of, and what queries are made of.

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
  size_t begin = 0;  // where it is in the text, in bytes
  size_t end = 0;
};

// The terms of a text of valid UTF-8, in its order. Breaks words as Unicode says (UAX 29); numbers are words. Makes no
// difference between languages, so it does not stem.
std::vector<Term> TermsOf(std::string_view text);
// The same, slowly: TermsOf takes a short cut for words of ASCII. For tests.
std::vector<Term> TermsWithoutShortCut(std::string_view text);

// How often each is there.
std::map<std::string, uint32_t> CountTerms(std::string_view text);

// The text with every byte that is not UTF-8 replaced by U+FFFD.
std::string ToValidUtf8(std::string_view text);

// The beginning of a text of valid UTF-8: at most so many bytes, and no half of a character.
std::string_view CutAtCharacter(std::string_view text, size_t most);

// 128 bits of a hash that is the same on every machine and in every version.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 HashOf(std::string_view bytes);

// The same of bytes that come piece by piece.
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

// SimHash of the pairs of neighbouring terms: texts that are nearly the same have keys that differ in few bits.
uint64_t NearKeyOf(const std::vector<Term>& terms);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TERMS_H_
