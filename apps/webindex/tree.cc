// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/tree.h"

#include <gumbo.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "apps/webindex/markup.h"

namespace webindex {
namespace {

using Names = std::unordered_set<std::string_view>;

// --- The cost of a tree ----------------------------------------------------------------------------------------------------

// The parser searches all open elements for every tag, and at worst for every character. It also opens formatting elements
// again, with all their attributes, in every block before their end tag.
constexpr uint64_t kStepsPerByte = 256;
constexpr uint64_t kCopiedPerByte = 64;
constexpr uint64_t kStepsOfAnyPage = 1 << 20;
constexpr uint64_t kCopiedOfAnyPage = 16 << 20;
constexpr uint64_t kBytesOfElement = 256;  // of a copy, without its attributes
constexpr uint64_t kMaxNodes = 1 << 18;    // each takes some hundred bytes, even if its source is three bytes

const Names& Formatting() {
  static const auto& names =
      *new Names{"a", "b", "big", "code", "em", "font", "i", "nobr", "small", "strike", "strong", "s", "tt", "u"};
  return names;
}

// Blocks. Their start tag ends a paragraph, and their end tag also ends elements that need no end tag.
const Names& Blocks() {
  static const auto& names = *new Names{
      "address", "article", "aside",    "blockquote", "center", "details", "dialog", "dir",    "div", "dl",
      "dd",      "dt",      "fieldset", "figcaption", "figure", "footer",  "header", "hgroup", "li",  "listing",
      "main",    "menu",    "nav",      "ol",         "pre",    "section", "ul",     "summary"};
  return names;
}

const Names& EndsParagraph() {
  static const auto& names = *new Names{"p", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "form", "xmp"};
  return names;
}

const Names& NeedsNoEnd() {
  static const auto& names = *new Names{"li", "dd", "dt", "p", "option", "optgroup", "rb", "rp", "rt", "rtc"};
  return names;
}

const Names& PartsOfTables() {
  static const auto& names = *new Names{"table", "tbody", "thead", "tfoot", "tr", "td", "th"};
  return names;
}

// Elements within which the parser treats tags differently: it ignores them, or does not read their content as raw text.
const Names& Islands() {
  static const auto& names = *new Names{"svg", "math", "select", "frameset"};
  return names;
}

// In a drawing or a formula, these elements lead back to HTML.
const Names& LeadBackToHtml() {
  static const auto& names = *new Names{"b",          "big",
                                        "blockquote", "body",
                                        "br",         "center",
                                        "code",       "dd",
                                        "div",        "dl",
                                        "dt",         "em",
                                        "embed",      "h1",
                                        "h2",         "h3",
                                        "h4",         "h5",
                                        "h6",         "head",
                                        "hr",         "i",
                                        "img",        "li",
                                        "listing",    "menu",
                                        "meta",       "nobr",
                                        "ol",         "p",
                                        "pre",        "ruby",
                                        "s",          "small",
                                        "span",       "strong",
                                        "strike",     "sub",
                                        "sup",        "table",
                                        "tt",         "u",
                                        "ul",         "var",
                                        "font",       "foreignobject",
                                        "desc",       "title",
                                        "mi",         "mo",
                                        "mn",         "ms",
                                        "mtext",      "annotation-xml"};
  return names;
}

// Follows the open elements. It may consider an element open that the parser has closed, but not the reverse, so it closes one
// only where the parser certainly does. The estimate is right for well-formed pages, and too high for repeated wrong nesting.
class TreeCost {
 public:
  explicit TreeCost(size_t bytes)
      : most_steps_(kStepsOfAnyPage + kStepsPerByte * bytes), most_copied_(kCopiedOfAnyPage + kCopiedPerByte * bytes) {}

  // Sets whether the text up to the end tag is raw.
  void Add(const Token& token, bool& raw) {
    if (token.kind != Token::Kind::kEnd) ++nodes_;
    steps_ += (token.text.size() + 1) * (open_.size() + 1);
    copied_ += formatting_bytes_;
    AddAttributes(token);
    if (token.kind == Token::Kind::kStart) raw = Start(token);
    if (token.kind == Token::Kind::kEnd) End(token.name);
  }
  bool too_much() const { return nodes_ > kMaxNodes || steps_ > most_steps_ || copied_ > most_copied_; }

 private:
  struct Element {
    std::string name;
    uint64_t formatting_bytes = 0;
    bool foreign = false;  // in a drawing or a formula
  };

  bool Start(const Token& token) {
    CloseImplied(token.name);
    const bool foreign = IsForeign(token.name);
    if (IsVoid(token.name) || (foreign && token.self_closing)) return false;
    Element element{.name = token.name, .foreign = foreign};
    if (Formatting().contains(token.name)) element.formatting_bytes = kBytesOfElement + 2 * token.text.size();
    formatting_bytes_ += element.formatting_bytes;
    const bool raw = islands_ == 0 && HasRawText(token.name);
    if (Islands().contains(token.name)) ++islands_;
    open_.push_back(std::move(element));
    return raw;
  }

  // The parser compares each attribute with those before it, and adds those of html and body tags to the first such tag.
  void AddAttributes(const Token& token) {
    const uint64_t count = token.attributes.size();
    uint64_t before = 0;
    if (token.name == "html" || token.name == "body")
      before = std::exchange(root_attributes_, root_attributes_ + count);
    steps_ += 2 * count * (count + before);
  }

  bool IsForeign(std::string_view name) {
    if (name == "svg" || name == "math") return sure_of_foreign_;
    if (open_.empty() || !open_.back().foreign) return false;
    if (LeadBackToHtml().contains(name)) sure_of_foreign_ = false;
    return sure_of_foreign_;
  }

  void CloseImplied(std::string_view name) {
    if (Blocks().contains(name) || EndsParagraph().contains(name)) PopIf({"p"});
    if (name == "li" || name == "option" || name == "a") PopIf({name});
    if (name == "dd" || name == "dt") PopIf({"dd", "dt"});
    if (name == "td" || name == "th" || name == "tr") PopIf({"td", "th"});
    if (name == "tr") PopIf({"tr"});
  }

  void End(std::string_view name) {
    if (open_.empty()) return;
    if (open_.back().foreign && open_.back().name != name) sure_of_foreign_ = false;
    const bool table = PartsOfTables().contains(name);
    size_t at = open_.size() - 1;
    if (table || Blocks().contains(name)) {
      while (at > 0 && open_[at].name != name && IsImplied(open_[at].name, table)) --at;
    }
    if (open_[at].name != name) return;
    while (open_.size() > at) Pop();
  }

  static bool IsImplied(std::string_view name, bool end_of_table) {
    return NeedsNoEnd().contains(name) || (end_of_table && name != "table" && PartsOfTables().contains(name));
  }

  void PopIf(std::initializer_list<std::string_view> names) {
    if (!open_.empty() && std::find(names.begin(), names.end(), open_.back().name) != names.end()) Pop();
  }

  void Pop() {
    formatting_bytes_ -= open_.back().formatting_bytes;
    if (Islands().contains(open_.back().name)) --islands_;
    open_.pop_back();
  }

  const uint64_t most_steps_;
  const uint64_t most_copied_;
  uint64_t nodes_ = 0;
  uint64_t steps_ = 0;
  uint64_t copied_ = 0;
  std::vector<Element> open_;
  uint64_t formatting_bytes_ = 0;  // of all open formatting elements
  uint64_t root_attributes_ = 0;
  int islands_ = 0;
  bool sure_of_foreign_ = true;
};

// --- The tree --------------------------------------------------------------------------------------------------------------

// The allocations of the parser. The parser would free a deep tree by recursion; this frees it in a loop.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    while (pieces_.next != nullptr) Free(pieces_.next + 1);
  }

  void* Allocate(size_t bytes) {
    auto* piece = static_cast<Piece*>(std::malloc(sizeof(Piece) + bytes));
    if (piece == nullptr) std::abort();  // the parser does not check for null
    piece->before = &pieces_;
    piece->next = pieces_.next;
    if (piece->next != nullptr) piece->next->before = piece;
    pieces_.next = piece;
    return piece + 1;
  }

  static void Free(void* memory) {
    if (memory == nullptr) return;
    Piece* piece = static_cast<Piece*>(memory) - 1;
    piece->before->next = piece->next;
    if (piece->next != nullptr) piece->next->before = piece->before;
    std::free(piece);
  }

 private:
  struct alignas(std::max_align_t) Piece {
    Piece* before = nullptr;
    Piece* next = nullptr;
  };
  Piece pieces_;  // the head of a list
};

bool IsElement(const GumboNode* node) { return node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE; }

std::string_view NameOf(const GumboNode* node) {
  const GumboTag tag = node->v.element.tag;
  const bool html = node->v.element.tag_namespace == GUMBO_NAMESPACE_HTML;
  if (html || tag == GUMBO_TAG_SCRIPT || tag == GUMBO_TAG_STYLE) return gumbo_normalized_tagname(tag);
  return {};
}

void Enter(const GumboNode* node, Visitor& visitor) {
  if (IsElement(node)) {
    visitor.Open(NameOf(node), [node](const char* name) -> std::string {
      const GumboAttribute* attribute = gumbo_get_attribute(&node->v.element.attributes, name);
      return attribute == nullptr ? "" : attribute->value;
    });
  } else if (node->type == GUMBO_NODE_COMMENT) {
    visitor.Comment(node->v.text.text);
  } else if (node->type != GUMBO_NODE_DOCUMENT) {
    visitor.Characters(node->v.text.text);
  }
}

const GumboVector* ChildrenOf(const GumboNode* node) {
  if (node->type == GUMBO_NODE_DOCUMENT) return &node->v.document.children;
  return IsElement(node) ? &node->v.element.children : &kGumboEmptyVector;
}

// Iterative, because the tree may be deep.
void Walk(const GumboNode* root, Visitor& visitor) {
  struct Step {
    const GumboNode* node;
    unsigned next_child;
  };
  std::vector<Step> steps{{root, 0}};
  while (!steps.empty()) {
    Step& step = steps.back();
    const GumboVector* children = ChildrenOf(step.node);
    if (step.next_child < children->length) {
      const auto* child = static_cast<const GumboNode*>(children->data[step.next_child++]);
      Enter(child, visitor);
      steps.push_back({child, 0});
    } else {
      if (IsElement(step.node)) visitor.Close(NameOf(step.node));
      steps.pop_back();
    }
  }
}

std::string AttributeOf(const Token& token, std::string_view name) {
  for (const Token::Attribute& attribute : token.attributes) {
    if (absl::EqualsIgnoreCase({attribute.name.data(), attribute.name.size()}, {name.data(), name.size()})) {
      return DecodeEntities(attribute.value);
    }
  }
  return "";
}

}  // namespace

bool TreeIsCheap(std::string_view html) {
  TreeCost cost(html.size());
  Tokens tokens(html);
  while (tokens.Next()) {
    bool raw = false;
    cost.Add(tokens.token(), raw);
    if (cost.too_much()) return false;
    if (raw) tokens.ExpectRawText(tokens.token().name);
  }
  return true;
}

void VisitTree(std::string_view html, Visitor& visitor) {
  Memory memory;
  GumboOptions options = kGumboDefaultOptions;
  options.userdata = &memory;
  options.allocator = [](void* all, size_t bytes) { return static_cast<Memory*>(all)->Allocate(bytes); };
  options.deallocator = [](void*, void* piece) { Memory::Free(piece); };
  options.max_errors = 0;
  const GumboOutput* output = gumbo_parse_with_options(&options, html.data(), html.size());
  Walk(output->document, visitor);
}

void VisitTokens(std::string_view html, Visitor& visitor) {
  Tokens tokens(html);
  while (tokens.Next()) {
    const Token& token = tokens.token();
    switch (token.kind) {
      case Token::Kind::kText:
      case Token::Kind::kRawText:
        visitor.Characters(DecodeEntities(token.text));
        break;
      case Token::Kind::kStart:
        if (token.name == "a") visitor.Close("a");  // links do not nest
        visitor.Open(token.name, [&token](const char* name) { return AttributeOf(token, name); });
        if (HasRawText(token.name)) tokens.ExpectRawText(token.name);
        break;
      case Token::Kind::kEnd:
        visitor.Close(token.name);
        break;
      case Token::Kind::kComment:
        visitor.Comment(token.text);
        break;
      case Token::Kind::kDropped:
        break;
    }
  }
}

}  // namespace webindex
