// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/terms.h"

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

namespace webindex {
namespace {

// Aborts on an error of ICU. Its data is part of the library, so an error means that the installation is broken.
void CheckIcu(UErrorCode status, const char* what) {
  if (U_SUCCESS(status)) return;
  std::cerr << "webindex: ICU has no " << what << ": " << u_errorName(status) << "\n";
  std::abort();
}

// The word breaker of the root locale, independent of the machine's locale. Creating one takes long, so each thread keeps one.
icu::BreakIterator& WordBreaks() {
  thread_local const std::unique_ptr<icu::BreakIterator> breaks = [] {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
    CheckIcu(status, "word breaks");
    return made;
  }();
  return *breaks;
}

// Returns true for a mark above or below a letter that does not change the word. Vowels of Indic scripts, and the marks that
// distinguish "ka" from "ga" in Japanese, stay.
bool IsAccent(UChar32 c) {
  if (u_charType(c) != U_NON_SPACING_MARK || c == 0x3099 || c == 0x309a) return false;
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(c, &status) == USCRIPT_INHERITED;
}

std::string Fold(const icu::UnicodeString& word) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* fold = icu::Normalizer2::getNFKCCasefoldInstance(status);
  const icu::Normalizer2* decompose = icu::Normalizer2::getNFDInstance(status);
  const icu::Normalizer2* compose = icu::Normalizer2::getNFCInstance(status);
  CheckIcu(status, "normalization");
  const icu::UnicodeString decomposed = decompose->normalize(fold->normalize(word, status), status);
  icu::UnicodeString kept;
  for (int32_t i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
    const UChar32 c = decomposed.char32At(i);
    if (!IsAccent(c) && !u_isUWhiteSpace(c) && !u_iscntrl(c)) kept.append(c);
  }
  std::string folded;
  compose->normalize(kept, status).toUTF8String(folded);
  CheckIcu(status, "normalization");
  return folded;
}

// Returns true for a word whose only kept characters are underscores, such as a drawn line. It is not a term.
void AddTerm(std::string text, size_t begin, size_t end, std::vector<Term>& terms) {
  text.resize(CutAtCharacter(text, kLongestTerm).size());
  if (text.find_first_not_of('_') == std::string_view::npos) return;
  terms.push_back({.text = std::move(text), .begin = begin, .end = end});
}

// Of a very long word, only the beginning counts: this many UTF-16 units are more than kLongestTerm bytes of any text.
constexpr int32_t kFoldedAtMost = 1024;

// Adds the terms of text[begin, end), with ICU. Versions of ICU differ on ':' and '@' between letters; here they are spaces.
void AddTermsOfUnicode(std::string_view text, size_t begin, size_t end, std::vector<Term>& terms) {
  std::string piece(text.substr(begin, end - begin));
  std::replace_if(
      piece.begin(), piece.end(), [](char c) { return c == ':' || c == '@'; }, ' ');
  const icu::UnicodeString units = icu::UnicodeString::fromUTF8(piece);
  icu::BreakIterator& breaks = WordBreaks();
  breaks.setText(units);
  size_t byte = begin;
  int32_t from = breaks.first();
  for (int32_t to = breaks.next(); to != icu::BreakIterator::DONE; from = to, to = breaks.next()) {
    const size_t word_begin = byte;
    for (int32_t i = from; i < to; i = units.moveIndex32(i, 1))
      byte += static_cast<size_t>(U8_LENGTH(units.char32At(i)));
    if (breaks.getRuleStatus() < UBRK_WORD_NONE_LIMIT) continue;
    int32_t length = std::min(to - from, kFoldedAtMost);
    AddTerm(Fold(units.tempSubString(from, length)), word_begin, byte, terms);
  }
}

// The classes of UAX 29 for the characters of ASCII.
enum class Kind : uint8_t { kOther, kLetter, kDigit, kUnderscore, kInNumbers, kInBoth };

constexpr std::array<Kind, 128> kKinds = [] {
  std::array<Kind, 128> kinds{};
  for (size_t c = 'a'; c <= 'z'; ++c) kinds[c] = kinds[c - 'a' + 'A'] = Kind::kLetter;
  for (size_t c = '0'; c <= '9'; ++c) kinds[c] = Kind::kDigit;
  kinds['_'] = Kind::kUnderscore;
  kinds[','] = kinds[';'] = Kind::kInNumbers;
  kinds['.'] = kinds['\''] = Kind::kInBoth;
  return kinds;
}();

bool IsWord(Kind kind) { return kind == Kind::kLetter || kind == Kind::kDigit || kind == Kind::kUnderscore; }

// Returns true for a character between two letters, or two digits, that does not end the word: "o'clock", "3.14".
bool Joins(Kind before, Kind kind, Kind after) {
  if (before != after) return false;
  if (before == Kind::kLetter) return kind == Kind::kInBoth;
  return before == Kind::kDigit && (kind == Kind::kInBoth || kind == Kind::kInNumbers);
}

// Adds the terms of text[begin, end). REQUIRES: it is ASCII.
void AddTermsOfAscii(std::string_view text, size_t begin, size_t end, std::vector<Term>& terms) {
  const auto kind = [&](size_t i) { return i < end ? kKinds[static_cast<unsigned char>(text[i])] : Kind::kOther; };
  for (size_t i = begin; i < end;) {
    if (!IsWord(kind(i))) {
      ++i;
      continue;
    }
    size_t to = i + 1;
    while (IsWord(kind(to)) || Joins(kind(to - 1), kind(to), kind(to + 1))) ++to;
    std::string word(text.substr(i, std::min(to - i, kLongestTerm)));
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    AddTerm(std::move(word), i, to, terms);
    i = to;
  }
}

// The end of the piece from `begin` to the next space, and whether it is ASCII.
std::pair<size_t, bool> Piece(std::string_view text, size_t begin) {
  unsigned char all = 0;
  size_t end = begin;
  for (; end < text.size() && text[end] != ' '; ++end) all |= static_cast<unsigned char>(text[end]);
  return {end, all < 0x80};
}

// A bijection that spreads every bit; the multiplier is any large odd number.
uint64_t Mix(uint64_t x, uint64_t multiplier) {
  x ^= x >> 32;
  x *= multiplier;
  x ^= x >> 29;
  x *= multiplier;
  return x ^ (x >> 32);
}

constexpr uint64_t kHigh = 0x9e3779b97f4a7c15;
constexpr uint64_t kLow = 0xc2b2ae3d27d4eb4f;

}  // namespace

// No rule reaches over a space, so mixed texts are split into pieces: ASCII takes the fast path, and runs of other text go to
// ICU.
std::vector<Term> TermsOf(std::string_view text) {
  std::vector<Term> terms;
  for (size_t begin = 0; begin < text.size();) {
    auto [end, ascii] = Piece(text, begin);
    if (ascii) {
      AddTermsOfAscii(text, begin, end, terms);
    } else {
      for (auto next = Piece(text, std::min(end + 1, text.size())); end < text.size() && !next.second;
           next = Piece(text, std::min(end + 1, text.size()))) {
        end = next.first;
      }
      AddTermsOfUnicode(text, begin, end, terms);
    }
    begin = end + 1;
  }
  return terms;
}

std::vector<Term> TermsWithoutShortCut(std::string_view text) {
  std::vector<Term> terms;
  AddTermsOfUnicode(text, 0, text.size(), terms);
  return terms;
}

std::map<std::string, uint32_t> CountTerms(std::string_view text) {
  std::map<std::string, uint32_t> counts;
  for (Term& term : TermsOf(text)) ++counts[std::move(term.text)];
  return counts;
}

std::string ToValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c = 0;
    U8_NEXT(text.data(), i, length, c);
    if (c >= 0) {
      valid += text.substr(static_cast<size_t>(begin), static_cast<size_t>(i - begin));
    } else {
      valid += "\xef\xbf\xbd";
      i = begin + 1;
    }
  }
  return valid;
}

std::string_view CutAtCharacter(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && U8_IS_TRAIL(static_cast<uint8_t>(text[max_bytes]))) --max_bytes;
  return text.substr(0, max_bytes);
}

Hash128 HashOf(std::string_view bytes) {
  Hasher hasher;
  hasher.Add(bytes);
  return hasher.Finish();
}

// Reads words of eight bytes, the lowest byte first.
void Hasher::Add(std::string_view bytes) {
  size_t at = 0;
  const auto add_byte = [&] { word_ |= uint64_t{static_cast<unsigned char>(bytes[at++])} << (8 * (length_++ % 8)); };
  while (at < bytes.size()) {
    add_byte();
    if (length_ % 8 != 0) continue;
    AddWord(std::exchange(word_, 0));
    for (; at + 8 <= bytes.size(); length_ += 8) {
      uint64_t word = 0;
      for (size_t i = 0; i < 8; ++i) word |= uint64_t{static_cast<unsigned char>(bytes[at++])} << (8 * i);
      AddWord(word);
    }
  }
}

void Hasher::AddWord(uint64_t word) {
  hash_.high = Mix(hash_.high ^ word, kHigh);
  hash_.low = Mix(hash_.low + word, kLow);
}

Hash128 Hasher::Finish() {
  if (length_ % 8 != 0) AddWord(word_);
  return {.high = Mix(hash_.high ^ (length_ + 1), kHigh), .low = Mix(hash_.low + length_ + 2, kLow)};
}

uint64_t NearKeyOf(const std::vector<Term>& terms) {
  std::array<int32_t, 64> votes{};
  uint64_t before = 0;
  for (const Term& term : terms) {
    const uint64_t here = HashOf(term.text).low;
    const uint64_t pair = Mix((before * kHigh) ^ here, kLow);
    for (size_t bit = 0; bit < votes.size(); ++bit) votes[bit] += (pair >> bit & 1) != 0 ? 1 : -1;
    before = here;
  }
  uint64_t key = 0;
  for (size_t bit = 0; bit < votes.size(); ++bit) key |= uint64_t{votes[bit] > 0} << bit;
  return key;
}

}  // namespace webindex
