// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/markup.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"

namespace webindex {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
bool EndsName(char c) { return IsSpace(c) || c == '/' || c == '>'; }

void AppendCharacter(UChar32 c, std::string& text) {
  const bool none = c == 0 || c > 0x10ffff || U_IS_SURROGATE(c);
  std::array<char, U8_MAX_LENGTH> bytes{};
  size_t length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, none ? 0xfffd : c);
  text.append(bytes.data(), length);
}

// The character of an entity, which is given without '&' and ';'. Negative if unknown.
UChar32 CharacterOf(std::string_view entity) {
  static constexpr std::array<std::pair<std::string_view, UChar32>, 6> kNames{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xa0}}};
  for (const auto& [name, c] : kNames) {
    if (entity == name) return c;
  }
  if (entity.size() < 2 || entity[0] != '#') return -1;
  const bool hexadecimal = entity[1] == 'x' || entity[1] == 'X';
  const std::string digits(entity.substr(hexadecimal ? 2 : 1));
  char* end = nullptr;
  const long value = std::strtol(digits.c_str(), &end, hexadecimal ? 16 : 10);
  if (digits.empty() || *end != '\0' || value < 0) return -1;
  return static_cast<UChar32>(std::min(value, 0x110000L));
}

}  // namespace

bool HasRawText(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kNames{"script", "style",   "title",    "textarea", "xmp",
                                                          "iframe", "noembed", "noframes", "plaintext"};
  return IsOneOf(name, kNames);
}

bool IsVoid(std::string_view name) {
  static constexpr std::array<std::string_view, 18> kNames{"area",  "base",  "basefont", "bgsound", "br",    "col",
                                                           "embed", "frame", "hr",       "img",     "input", "keygen",
                                                           "link",  "meta",  "param",    "source",  "track", "wbr"};
  return IsOneOf(name, kNames);
}

std::string DecodeEntities(std::string_view text) {
  constexpr size_t kLongestEntity = 10;
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = std::min(text.find('&'), text.size());
    decoded += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t end = text.substr(0, kLongestEntity).find(';');
    const UChar32 c = end == std::string_view::npos ? -1 : CharacterOf(text.substr(1, end - 1));
    if (c < 0) {
      decoded += '&';
      text.remove_prefix(1);
    } else {
      AppendCharacter(c, decoded);
      text.remove_prefix(end + 1);
    }
  }
  return decoded;
}

bool Tokens::Next() {
  token_ = Token();
  if (at_ >= html_.size()) return false;
  if (!raw_.empty()) {
    RawText();
    if (!token_.text.empty()) return true;
  }
  const char next = at_ + 1 < html_.size() ? html_[at_ + 1] : '\0';
  const bool markup = html_[at_] == '<';
  if (markup && IsLetter(next)) {
    Tag(Token::Kind::kStart, at_ + 1);
  } else if (markup && next == '/' && at_ + 2 < html_.size() && IsLetter(html_[at_ + 2])) {
    Tag(Token::Kind::kEnd, at_ + 2);
  } else if (Has(at_, "<!--")) {
    Comment(at_ + 4);
  } else if (markup && (next == '!' || next == '?' || (next == '/' && at_ + 2 < html_.size()))) {
    BogusComment(at_ + 2);
  } else {
    Text(at_ + 1);
  }
  return true;
}

// Returns the text up to the next '<' at or after `end`.
void Tokens::Text(size_t end) {
  end = std::min(html_.find('<', end), html_.size());
  token_.text = html_.substr(at_, end - at_);
  at_ = end;
}

void Tokens::RawText() {
  const std::string name = std::exchange(raw_, "");
  size_t end = html_.size();
  if (name == "script") {
    end = EndOfScript();
  } else if (name != "plaintext") {
    end = EndTag(name, at_);
  }
  token_.kind = Token::Kind::kRawText;
  token_.text = html_.substr(at_, end - at_);
  at_ = end;
  if (token_.text.empty()) token_ = Token();
}

void Tokens::Comment(size_t begin) {
  token_.kind = Token::Kind::kComment;
  for (const std::string_view empty : {">", "->"}) {
    if (!Has(begin, empty)) continue;
    at_ = begin + empty.size();
    return;
  }
  size_t end = html_.find("--", begin);
  while (end != std::string_view::npos && !Has(end, "-->") && !Has(end, "--!>")) end = html_.find("--", end + 1);
  token_.text = html_.substr(begin, end == std::string_view::npos ? end : end - begin);
  at_ = end == std::string_view::npos ? html_.size() : html_.find('>', end) + 1;
}

void Tokens::BogusComment(size_t begin) {
  const size_t end = html_.find('>', begin);
  token_.kind = Token::Kind::kComment;
  token_.text = html_.substr(begin, end == std::string_view::npos ? end : end - begin);
  at_ = end == std::string_view::npos ? html_.size() : end + 1;
}

// A tag without an end is not a tag, as in browsers.
void Tokens::Tag(Token::Kind kind, size_t name) {
  const size_t begin = at_;
  token_.kind = kind;
  for (at_ = name; at_ < html_.size() && !EndsName(html_[at_]); ++at_) {
    token_.name += absl::ascii_tolower(static_cast<unsigned char>(html_[at_]));
  }
  while (at_ < html_.size() && html_[at_] != '>') {
    if (html_[at_] == '/') token_.self_closing = at_ + 1 < html_.size() && html_[at_ + 1] == '>';
    at_ = IsSpace(html_[at_]) || html_[at_] == '/' ? at_ + 1 : Attribute(at_);
  }
  if (at_ >= html_.size()) token_.kind = Token::Kind::kDropped;
  at_ = std::min(at_ + 1, html_.size());
  token_.text = html_.substr(begin, at_ - begin);
}

// Returns the position after it.
size_t Tokens::Attribute(size_t at) {
  const size_t begin = at++;  // the first character is part of the name, even if it is '='
  while (at < html_.size() && !EndsName(html_[at]) && html_[at] != '=') ++at;
  token_.attributes.push_back({.name = html_.substr(begin, at - begin), .value = {}});
  size_t value = at;
  while (value < html_.size() && IsSpace(html_[value])) ++value;
  if (value >= html_.size() || html_[value] != '=') return at;
  ++value;
  while (value < html_.size() && IsSpace(html_[value])) ++value;
  if (value >= html_.size() || html_[value] == '>') return value;
  size_t end = value;
  if (html_[value] == '"' || html_[value] == '\'') {
    end = std::min(html_.find(html_[value], value + 1), html_.size());
    token_.attributes.back().value = html_.substr(value + 1, end - value - 1);
    return std::min(end + 1, html_.size());
  }
  while (end < html_.size() && !IsSpace(html_[end]) && html_[end] != '>') ++end;
  token_.attributes.back().value = html_.substr(value, end - value);
  return end;
}

// Matches "<script" or "</script" and a character that ends the name.
bool Tokens::IsTagAt(size_t at, std::string_view name) const {
  if (at + name.size() >= html_.size() || !EndsName(html_[at + name.size()])) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (static_cast<char>(absl::ascii_tolower(static_cast<unsigned char>(html_[at + i]))) != name[i]) return false;
  }
  return true;
}

size_t Tokens::EndTag(std::string_view name, size_t from) const {
  for (size_t at = html_.find("</", from); at != std::string_view::npos; at = html_.find("</", at + 2)) {
    if (IsTagAt(at + 2, name)) return at;
  }
  return html_.size();
}

// Within text that looks like a comment, a script may contain "<script>...</script>".
size_t Tokens::EndOfScript() const {
  bool comment = false;
  bool within = false;
  for (size_t at = html_.find_first_of("<-", at_); at != std::string_view::npos;
       at = html_.find_first_of("<-", at + 1)) {
    if (!comment) {
      if (Has(at, "<!--")) {
        comment = true;
        at += 1;  // its dashes may also belong to "-->"
      }
    } else if (Has(at, "-->")) {
      comment = within = false;
    } else if (!within && html_[at] == '<' && IsTagAt(at + 1, "script")) {
      within = true;
    } else if (within && Has(at, "</") && IsTagAt(at + 2, "script")) {
      within = false;
      continue;
    }
    if (!within && Has(at, "</") && IsTagAt(at + 2, "script")) return at;
  }
  return html_.size();
}

}  // namespace webindex
