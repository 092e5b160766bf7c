// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/parse.h"

#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "apps/webindex/markup.h"
#include "apps/webindex/terms.h"
#include "apps/webindex/tree.h"
#include "apps/webindex/url.h"

namespace webindex {
namespace {

std::string Lower(std::string_view text) { return absl::AsciiStrToLower({text.data(), text.size()}); }

// --- Encodings -------------------------------------------------------------------------------------------------------------

constexpr size_t kDeclaredWithin = 1024;  // bytes; the same limit as in browsers

// The value after a name such as "charset", in a <meta> or an XML declaration. Empty if it is missing.
std::string DeclaredAfter(std::string_view head, std::string_view name) {
  size_t at = head.find(name);
  if (at == std::string_view::npos) return "";
  at = head.find_first_not_of(" \t\r\n", at + name.size());
  if (at == std::string_view::npos || head[at] != '=') return "";
  at = head.find_first_not_of(" \t\r\n\"'", at + 1);
  if (at == std::string_view::npos) return "";
  return std::string(head.substr(at, head.find_first_of(" \t\r\n\"';/>?", at) - at));
}

// The encoding that the page declares, in lower case. Empty if it declares none.
std::string DeclaredEncoding(std::string_view contents) {
  const std::string head = Lower(contents.substr(0, kDeclaredWithin));
  std::string name = head.starts_with("<?xml") ? DeclaredAfter(head.substr(0, head.find("?>")), "encoding") : "";
  const size_t meta = head.find("<meta");
  if (name.empty() && meta != std::string_view::npos)
    name = DeclaredAfter(std::string_view(head).substr(meta), "charset");
  // Pages that declare the first contain the letters and quotes of the second, not control characters.
  return name == "iso-8859-1" || name == "latin1" || name == "us-ascii" || name == "ascii" ? "windows-1252" : name;
}

// Converts from an encoding to UTF-8. Returns nullopt if ICU does not know the encoding.
std::optional<std::string> Converted(std::string_view bytes, const std::string& encoding) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UConverter, decltype(&ucnv_close)> converter(ucnv_open(encoding.c_str(), &status), &ucnv_close);
  if (U_FAILURE(status)) return std::nullopt;
  const auto length = static_cast<int32_t>(bytes.size());
  std::string text(3 * bytes.size() + 16, '\0');  // a byte becomes at most one UTF-16 unit, and that three bytes
  const int32_t written = ucnv_toAlgorithmic(UCNV_UTF8, converter.get(), text.data(), static_cast<int32_t>(text.size()),
                                             bytes.data(), length, &status);
  if (U_FAILURE(status) || written > static_cast<int32_t>(text.size())) return std::nullopt;
  text.resize(static_cast<size_t>(written));
  return text;
}

// Returns true for an encoding in which a declaration in ASCII can be read.
bool ContainsAscii(const std::string& encoding) {
  return Converted("<meta charset=A-z>", encoding) == "<meta charset=A-z>";
}

// Returns the page as valid UTF-8.
std::string Decode(std::string_view contents) {
  if (contents.starts_with("\xef\xbb\xbf")) return ToValidUtf8(contents.substr(3));
  for (const auto& [mark, encoding] : {std::pair("\xff\xfe", "UTF-16LE"), std::pair("\xfe\xff", "UTF-16BE")}) {
    if (!contents.starts_with(mark)) continue;
    if (const auto text = Converted(contents.substr(2), encoding); text.has_value()) return ToValidUtf8(*text);
  }
  const std::string encoding = DeclaredEncoding(contents);
  if (!encoding.empty() && encoding != "utf-8" && encoding != "utf8" && ContainsAscii(encoding)) {
    if (const auto text = Converted(contents, encoding); text.has_value()) return ToValidUtf8(*text);
  }
  return ToValidUtf8(contents);
}

// --- Text ------------------------------------------------------------------------------------------------------------------

// Words with single spaces between them.
class Words {
 public:
  void Separate() { separate_ = true; }

  void Add(std::string_view text) {
    const auto length = static_cast<int64_t>(text.size());
    for (int64_t i = 0; i < length;) {
      const int64_t begin = i;
      UChar32 c = 0;
      U8_NEXT(text.data(), i, length, c);
      if (c <= ' ' || c == 0x7f || (c >= 0x80 && u_isUWhiteSpace(c))) {
        separate_ = true;
        continue;
      }
      if (separate_ && !text_.empty()) text_ += ' ';
      separate_ = false;
      text_ += text.substr(static_cast<size_t>(begin), static_cast<size_t>(i - begin));
    }
  }

  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

  // The words from a position that size() has returned.
  std::string_view From(size_t begin) const {
    std::string_view words = std::string_view(text_).substr(begin);
    if (words.starts_with(' ')) words.remove_prefix(1);
    return words;
  }

 private:
  std::string text_;
  bool separate_ = false;
};

// Cuts words to max_bytes, without a space at the end.
std::string Cut(std::string_view words, size_t max_bytes) {
  words = CutAtCharacter(words, max_bytes);
  if (words.ends_with(' ')) words.remove_suffix(1);
  return std::string(words);
}

std::string WordsOf(std::string_view text, size_t max_bytes) {
  Words words;
  words.Add(text);
  return Cut(words.text(), max_bytes);
}

// --- The page --------------------------------------------------------------------------------------------------------------

// Elements whose content people do not read, or only in browsers without the feature.
bool IsHidden(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames{"script", "style",   "noscript", "template",
                                                          "iframe", "noembed", "noframes"};
  return IsOneOf(name, kNames);
}

// Elements that do not separate words.
bool IsWithinWords(std::string_view name) {
  static constexpr std::array<std::string_view, 36> kNames{
      "a",    "abbr",   "acronym", "b",   "bdi", "bdo",   "big",  "cite", "code", "data", "del",  "dfn",
      "em",   "font",   "i",       "ins", "kbd", "label", "mark", "nobr", "q",    "s",    "samp", "small",
      "span", "strike", "strong",  "sub", "sup", "time",  "tt",   "u",    "var",  "wbr",  "ruby", "blink"};
  return IsOneOf(name, kNames);
}

// Returns true if a list of words, such as the value of rel, contains the word.
bool HasWord(std::string_view list, std::string_view word) {
  return (" " + WordsOf(Lower(list), list.size()) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

constexpr int kMaxRefresh = 9;  // seconds; with a longer delay, people are meant to read the page

// Returns the url of "0; url=there", or an empty text if the value has another form.
std::string RefreshTarget(std::string_view content) {
  const std::string lower = Lower(content);
  size_t at = lower.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos || lower[at] < '0' || lower[at] > '0' + kMaxRefresh) return "";
  at = lower.find_first_of(";,", at);
  if (at == std::string_view::npos ||
      lower.substr(0, at).find_first_not_of("0123456789. \t\r\n") != std::string_view::npos)
    return "";
  if (WordsOf(lower.substr(0, at), at).size() > 1) return "";
  at = lower.find("url", at);
  if (at == std::string_view::npos) return "";
  at = lower.find_first_not_of(" \t\r\n", at + 3);
  if (at == std::string_view::npos || lower[at] != '=') return "";
  at = lower.find_first_not_of(" \t\r\n\"'", at + 1);
  if (at == std::string_view::npos) return "";
  return std::string(content.substr(at, content.find_first_of("\"'", at) - at));
}

// Returns the path of <!--#include virtual="there" -->, or an empty text if the comment has another form.
std::string IncludeTarget(std::string_view comment) {
  const size_t include = comment.find_first_not_of(" \t\r\n");
  if (include == std::string_view::npos || !comment.substr(include).starts_with("#include")) return "";
  for (const std::string_view name : {"virtual", "file"}) {
    size_t at = comment.find(name, include);
    if (at == std::string_view::npos) continue;
    at = comment.find_first_not_of(" \t\r\n", at + name.size());
    if (at == std::string_view::npos || comment[at] != '=') continue;
    at = comment.find_first_of("\"'", at);
    if (at == std::string_view::npos) continue;
    return std::string(comment.substr(at + 1, comment.find(comment[at], at + 1) - at - 1));
  }
  return "";
}

// Collects the content of a page. Keeps links as written, because <base> may come after them.
class Extractor : public Visitor {
 public:
  struct WrittenLink {
    std::string href;
    std::string anchor;
  };

  void Open(std::string_view name, const AttributeFunction& attribute) override {
    if (!IsWithinWords(name)) body_.Separate();
    if (hidden_ == 0) {
      Take(name, attribute);
      TakeResources(name, attribute);
    }
    if (IsHidden(name)) ++hidden_;
    in_title_ = in_title_ || name == "title";
  }

  void Close(std::string_view name) override {
    if (!IsWithinWords(name)) body_.Separate();
    if (IsHidden(name) && hidden_ > 0) --hidden_;
    if (name == "title" && in_title_) {
      in_title_ = false;
      title_done_ = title_done_ || title_.size() > 0;
    }
    if (name == "a" && hidden_ == 0) CloseAnchor();
  }

  void Characters(std::string_view text) override {
    if (hidden_ > 0) return;
    if (!in_title_) {
      body_.Add(text);
    } else if (!title_done_) {
      title_.Add(text);
    }
  }

  void Comment(std::string_view text) override {
    if (std::string target = IncludeTarget(text); !target.empty()) includes_.push_back(std::move(target));
  }

  // Called after the last element.
  void Finish() {
    while (!anchors_.empty()) CloseAnchor();
  }

  const std::string& title() const { return title_.text(); }
  const std::string& body() const { return body_.text(); }
  const std::string& description() const { return description_; }
  const std::optional<std::string>& base() const { return base_; }
  const std::vector<WrittenLink>& links() const { return links_; }
  const std::vector<std::string>& resources() const { return resources_; }
  const std::vector<std::string>& includes() const { return includes_; }
  // The most reliable declaration first.
  std::vector<std::string> moved_to() const {
    std::vector<std::string> all = canonical_;
    all.insert(all.end(), refresh_.begin(), refresh_.end());
    return all;
  }

 private:
  struct Anchor {
    std::string href;  // empty if it is not a link
    size_t begin;      // in the body
    std::string alt;   // of the first image with one
  };

  void Take(std::string_view name, const AttributeFunction& attribute) {
    if (name == "a") {
      anchors_.push_back({.href = attribute("href"), .begin = body_.size(), .alt = {}});
    } else if (name == "area") {
      if (std::string href = attribute("href"); !href.empty()) {
        links_.push_back({.href = std::move(href), .anchor = WordsOf(attribute("alt"), kLongestAnchor)});
      }
    } else if (name == "img") {
      if (!anchors_.empty() && anchors_.back().alt.empty()) anchors_.back().alt = attribute("alt");
    } else if (name == "base") {
      if (std::string href = attribute("href"); !base_.has_value() && !href.empty()) base_ = std::move(href);
    } else if (name == "meta") {
      TakeMeta(attribute);
    } else if (name == "link" && HasWord(attribute("rel"), "canonical")) {
      canonical_.push_back(attribute("href"));
    }
  }

  void TakeMeta(const AttributeFunction& attribute) {
    if (description_.empty() && Lower(attribute("name")) == "description") {
      description_ = WordsOf(attribute("content"), kLongestDescription);
    }
    if (Lower(attribute("http-equiv")) != "refresh") return;
    if (std::string target = RefreshTarget(attribute("content")); !target.empty())
      refresh_.push_back(std::move(target));
  }

  void TakeResources(std::string_view name, const AttributeFunction& attribute) {
    static constexpr std::array<std::string_view, 9> kWithSource{"img",    "script", "iframe", "frame", "embed",
                                                                 "source", "video",  "audio",  "track"};
    if (IsOneOf(name, kWithSource)) AddResource(attribute("src"));
    if (name == "video") AddResource(attribute("poster"));
    if (name == "object") AddResource(attribute("data"));
    if (name == "input" && Lower(attribute("type")) == "image") AddResource(attribute("src"));
    if (name == "link") {
      const std::string rel = attribute("rel");
      if (HasWord(rel, "stylesheet") || HasWord(rel, "icon")) AddResource(attribute("href"));
    }
  }

  void AddResource(std::string written) {
    if (!written.empty()) resources_.push_back(std::move(written));
  }

  void CloseAnchor() {
    if (anchors_.empty()) return;
    Anchor anchor = std::move(anchors_.back());
    anchors_.pop_back();
    if (anchor.href.empty()) return;
    std::string words = Cut(body_.From(anchor.begin), kLongestAnchor);
    if (words.empty()) words = WordsOf(anchor.alt, kLongestAnchor);
    links_.push_back({.href = std::move(anchor.href), .anchor = std::move(words)});
  }

  int hidden_ = 0;
  bool in_title_ = false;
  bool title_done_ = false;
  Words title_;
  Words body_;
  std::string description_;
  std::optional<std::string> base_;
  std::vector<std::string> canonical_;
  std::vector<std::string> refresh_;
  std::vector<Anchor> anchors_;  // open ones
  std::vector<WrittenLink> links_;
  std::vector<std::string> resources_;
  std::vector<std::string> includes_;
};

// Resolves the links of a page, with its <base>.
class Resolver {
 public:
  Resolver(std::string_view base, std::string_view page, const std::optional<std::string>& base_of_page)
      : base_(base), page_(page), from_(page) {
    if (base_of_page.has_value()) from_ = ResolveLink(base, page, *base_of_page);
  }

  // Returns nullopt if the link leads outside, or to the page itself.
  std::optional<std::string> Resolve(std::string_view written) const {
    // If the page declares that it is outside, its links lead outside too, unless they name our host.
    const bool with_host = written.find("://") != std::string_view::npos;
    if (!from_.has_value() && !with_host) return std::nullopt;
    return Other(ResolveLink(base_, from_.value_or(std::string(page_)), written));
  }
  std::optional<std::string> ResolveInclude(std::string_view written) const {
    return Other(ResolveLink(base_, page_, written));
  }

 private:
  std::optional<std::string> Other(std::optional<std::string> target) const {
    if (target == page_) return std::nullopt;
    return target;
  }

  const std::string_view base_;
  const std::string_view page_;
  std::optional<std::string> from_;  // absent if the page is outside
};

Links LinksOf(const Extractor& page, const Resolver& resolver, Text& text) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const Extractor::WrittenLink& link : page.links()) {
    std::optional<std::string> target = resolver.Resolve(link.href);
    if (!target.has_value() || !IsPage(*target)) continue;
    if (found.size() == kMaxLinks) {
      text.add_notes("too many links");
      break;
    }
    found.emplace_back(std::move(*target), link.anchor);
  }
  std::sort(found.begin(), found.end());
  Links links;
  for (auto& [target, anchor] : found) {
    Link* link = links.add_links();
    link->set_target(std::move(target));
    link->set_anchor(std::move(anchor));
  }
  return links;
}

Resources ResourcesOf(const Extractor& page, const Resolver& resolver, Text& text) {
  std::vector<std::string> paths;
  for (const std::string& written : page.resources()) {
    if (auto path = resolver.Resolve(written); path.has_value()) paths.push_back(std::move(*path));
  }
  for (const std::string& written : page.includes()) {
    if (auto path = resolver.ResolveInclude(written); path.has_value()) paths.push_back(std::move(*path));
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (paths.size() > kMaxResources) {
    paths.resize(kMaxResources);
    text.add_notes("too many resources");
  }
  Resources resources;
  for (std::string& path : paths) resources.add_paths(std::move(path));
  return resources;
}

std::string MovedTo(const Extractor& page, const Resolver& resolver) {
  for (const std::string& written : page.moved_to()) {
    const std::optional<std::string> target = resolver.Resolve(written);
    if (target.has_value() && IsPage(*target)) return *target;
  }
  return "";
}

// The number of terms before the one that exceeds the limit.
size_t KeptTerms(const std::vector<Term>& terms) {
  std::unordered_set<std::string_view> different;
  for (size_t i = 0; i < terms.size(); ++i) {
    different.insert(terms[i].text);
    if (different.size() > kMaxTerms) return i;
  }
  return terms.size();
}

void SetBody(std::string body, Text& text) {
  std::vector<Term> terms = TermsOf(body);
  const size_t kept = KeptTerms(terms);
  if (kept < terms.size()) {
    text.add_notes("too many different words: only the beginning was read");
    body = Cut(body, terms[kept].begin);
    terms.resize(kept);
  }
  text.set_near_key(NearKeyOf(terms));
  text.set_body(std::move(body));
}

}  // namespace

ParsedPage ParsePage(std::string_view base, std::string_view url, std::string_view contents) {
  ParsedPage parsed;
  Text& text = parsed.text;
  if (contents.size() > kLargestPage) text.add_notes("too large: only the beginning was read");
  std::string html = Decode(CutAtCharacter(contents, kLargestPage));
  html.resize(CutAtCharacter(html, kLargestPage).size());  // invalid UTF-8 has become longer
  Extractor page;
  if (TreeIsCheap(html)) {
    VisitTree(html, page);
  } else {
    text.add_notes("too many tags, or nested too deeply: they were read as they come");
    VisitTokens(html, page);
  }
  page.Finish();
  text.set_title(Cut(page.title(), kLongestTitle));
  SetBody(page.body(), text);
  text.set_description(page.description());
  const Resolver resolver(base, url, page.base());
  const Hash128 hash = HashOf(text.title() + '\0' + text.body());
  parsed.identity.set_content_high(hash.high);
  parsed.identity.set_content_low(hash.low);
  parsed.identity.set_moved_to(MovedTo(page, resolver));
  parsed.links = LinksOf(page, resolver, text);
  parsed.resources = ResourcesOf(page, resolver, text);
  return parsed;
}

}  // namespace webindex
