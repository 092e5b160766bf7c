// SPDX-License-Identifier: Apache-2.0

// A tokenizer of HTML: reads tags and texts in one pass, for any bytes.
//
// It finds the same tokens as the tokenizer of the HTML standard finds in HTML content. It has two uses: to estimate the cost
// of a tree before one is built, and to read pages whose tree would cost too much.

#ifndef PERCOLATOR_APPS_WEBINDEX_MARKUP_H_
#define PERCOLATOR_APPS_WEBINDEX_MARKUP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace webindex {

struct Token {
  enum class Kind : uint8_t { kText, kRawText, kStart, kEnd, kComment, kDropped };
  struct Attribute {
    std::string_view name;   // as written
    std::string_view value;  // with entities
  };

  Kind kind = Kind::kText;
  std::string_view text;  // the whole token as written; of a comment, its content
  std::string name;       // of a tag, in lower case
  bool self_closing = false;
  std::vector<Attribute> attributes;
};

class Tokens {
 public:
  // The text must outlive it and the tokens.
  explicit Tokens(std::string_view html) : html_(html) {}

  // Returns false if there are no more tokens.
  bool Next();
  const Token& token() const { return token_; }

  // Call it after a start tag of kRawText: everything up to the end tag of this name is text without markup.
  void ExpectRawText(std::string_view name) { raw_ = name; }

 private:
  void Text(size_t end);
  void RawText();
  void Comment(size_t begin);
  void BogusComment(size_t begin);
  void Tag(Token::Kind kind, size_t name);
  size_t Attribute(size_t at);
  size_t EndOfScript() const;
  size_t EndTag(std::string_view name, size_t from) const;
  bool IsTagAt(size_t at, std::string_view name) const;
  bool Has(size_t at, std::string_view what) const { return html_.substr(at, what.size()) == what; }

  const std::string_view html_;
  size_t at_ = 0;
  std::string raw_;
  Token token_;
};

template <size_t n>
bool IsOneOf(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The elements whose content is text without markup.
bool HasRawText(std::string_view name);
// The elements that have no content, and no end tag.
bool IsVoid(std::string_view name);

// Replaces entities (numbers, and the most common names) by characters. Takes and returns valid UTF-8.
std::string DecodeEntities(std::string_view text);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_MARKUP_H_
