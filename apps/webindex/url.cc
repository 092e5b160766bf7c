// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/url.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace webindex {
namespace {

// absl::string_view differs from std::string_view if absl was built for C++14.
bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

bool IsValidUtf8(std::string_view text) {
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), i, length, c);
    if (c < 0) return false;
  }
  return true;
}

// Returns true if the name can be part of a row, and a line of a list.
bool CanBeUrl(std::string_view name) {
  return !name.empty() && name.size() <= kLongestUrl && name.find('\0') == std::string_view::npos &&
         name.find('\n') == std::string_view::npos && IsValidUtf8(name);
}

// Cleans the value of an attribute as browsers do: removes space around it, and all tabs and newlines.
std::string Clean(std::string_view link) {
  while (!link.empty() && static_cast<unsigned char>(link.front()) <= ' ') link.remove_prefix(1);
  while (!link.empty() && static_cast<unsigned char>(link.back()) <= ' ') link.remove_suffix(1);
  std::string clean;
  clean.reserve(link.size());
  for (const char c : link) {
    if (c != '\t' && c != '\n' && c != '\r') clean += c;
  }
  return clean;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Undoes escapes, because names of files have none. Keeps that of '/', which no name can contain.
std::string Unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 && HexDigit(text[i + 2]) >= 0;
    if (!escape) {
      plain += text[i];
      continue;
    }
    const auto c = static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
    if (c == '/') {
      plain += "%2F";
    } else {
      plain += c;
    }
    i += 2;
  }
  return plain;
}

// The length of "scheme" in "scheme:rest", or npos if there is none.
size_t SchemeEnd(std::string_view link) {
  if (link.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(link[0]))) return std::string_view::npos;
  for (size_t i = 1; i < link.size(); ++i) {
    if (link[i] == ':') return i;
    const bool may_be =
        absl::ascii_isalnum(static_cast<unsigned char>(link[i])) || link[i] == '+' || link[i] == '-' || link[i] == '.';
    if (!may_be) break;
  }
  return std::string_view::npos;
}

// The parts of the base: "https://docs.example.org/manual/" has the scheme "https", the host "docs.example.org" and the path
// "/manual/". The base is empty for a folder that is not on the web.
struct Site {
  std::string_view scheme;
  std::string_view host;
  std::vector<std::string> folders;
};

// Browsers treat both alike.
constexpr std::string_view kSlashes = "/\\";

// Splits a path, without empty parts.
std::vector<std::string_view> Split(std::string_view path, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t length = std::min(path.find_first_of(separators), path.size());
    if (length > 0) parts.push_back(path.substr(0, length));
    path.remove_prefix(std::min(length + 1, path.size()));
  }
  return parts;
}

// Returns the host of "//host/path", and sets `rest` to the path.
std::string_view TakeHost(std::string_view& rest) {
  rest.remove_prefix(2);
  const size_t length = std::min(rest.find_first_of("/\\?"), rest.size());
  const std::string_view host = rest.substr(0, length);
  rest.remove_prefix(length);
  return host;
}

bool BeginsWithHost(std::string_view rest) {
  const auto is_slash = [](char c) { return c == '/' || c == '\\'; };
  return rest.size() >= 2 && is_slash(rest[0]) && is_slash(rest[1]);
}

Site SiteOf(std::string_view base) {
  Site site;
  const size_t scheme = SchemeEnd(base);
  if (scheme != std::string_view::npos) {
    site.scheme = base.substr(0, scheme);
    base.remove_prefix(scheme + 1);
  }
  if (BeginsWithHost(base)) site.host = TakeHost(base);
  for (const std::string_view part : Split(base, kSlashes)) site.folders.push_back(Unescape(part));
  return site;
}

struct Reference {
  std::string_view path;   // empty for the page with the link
  std::string_view query;  // with its '?'
};

// Returns nullopt if the link leads to another site.
std::optional<Reference> Read(const Site& site, std::string_view link) {
  link = link.substr(0, link.find('#'));
  const size_t scheme = SchemeEnd(link);
  if (scheme != std::string_view::npos) {
    if (!EqualsIgnoringCase(link.substr(0, scheme), site.scheme)) return std::nullopt;
    link.remove_prefix(scheme + 1);
    if (!BeginsWithHost(link)) return std::nullopt;  // such as mailto:
  }
  const bool with_host = BeginsWithHost(link);
  if (with_host && (site.scheme.empty() || !EqualsIgnoringCase(TakeHost(link), site.host))) return std::nullopt;
  const size_t path = std::min(link.find('?'), link.size());
  Reference reference{.path = link.substr(0, path), .query = link.substr(path)};
  if (with_host && reference.path.empty()) reference.path = "/";
  return reference;
}

// Follows a path, part by part. Returns false if it climbs above the root of the site, or cannot be the name of a file.
bool Follow(std::string_view path, std::vector<std::string>& parts) {
  for (const std::string_view part : Split(path, kSlashes)) {
    std::string name = Unescape(part);
    if (absl::StrContains(name, "%2F")) return false;
    if (name == ".") continue;
    if (name != "..") {
      parts.push_back(std::move(name));
    } else if (parts.empty()) {
      return false;
    } else {
      parts.pop_back();
    }
  }
  return true;
}

// Returns true if the path names a folder, whose page is index.html.
bool NamesFolder(std::string_view path) {
  const size_t last = path.find_last_of(kSlashes);
  const std::string name = Unescape(last == std::string_view::npos ? path : path.substr(last + 1));
  return name.empty() || name == "." || name == "..";
}

std::string_view WithoutQuery(std::string_view page) {
  const size_t name = page.rfind('/') == std::string_view::npos ? 0 : page.rfind('/') + 1;
  return page.substr(0, page.find('?', name));
}

// The path below the base, from the parts below the root of the site. Empty if it is not below the base.
std::string Below(const Site& site, const std::vector<std::string>& parts) {
  if (parts.size() < site.folders.size()) return "";
  if (!std::equal(site.folders.begin(), site.folders.end(), parts.begin())) return "";
  std::string path;
  for (size_t i = site.folders.size(); i < parts.size(); ++i) {
    if (!path.empty()) path += '/';
    path += parts[i];
  }
  return path;
}

// Resolves a path from the folder of the page or, if it begins with '/', from the root of the site. Empty if it is outside.
std::string Walk(const Site& site, std::string_view page, std::string_view path) {
  std::vector<std::string> parts;
  if (path[0] != '/' && path[0] != '\\') {
    parts = site.folders;
    const std::string_view folder = page.substr(0, page.rfind('/') == std::string_view::npos ? 0 : page.rfind('/'));
    for (const std::string_view part : Split(folder, "/")) parts.emplace_back(part);
  }
  if (!Follow(path, parts)) return "";
  if (NamesFolder(path)) parts.emplace_back("index.html");
  return Below(site, parts);
}

void AppendQuery(std::string_view query, std::string& path) {
  for (const char c : Unescape(query)) {
    if (c == '/') {
      path += "%2F";
    } else {
      path += c;
    }
  }
}

}  // namespace

std::optional<std::string> ResolveLink(std::string_view base, std::string_view page, std::string_view link) {
  const Site site = SiteOf(base);
  const std::string clean = Clean(link);
  const std::optional<Reference> reference = Read(site, clean);
  if (!reference.has_value()) return std::nullopt;
  std::string target(reference->query.empty() ? page : WithoutQuery(page));
  if (!reference->path.empty()) target = Walk(site, page, reference->path);
  if (target.empty()) return std::nullopt;
  AppendQuery(reference->query, target);
  if (!CanBeUrl(target)) return std::nullopt;
  return target;
}

std::optional<std::string> UrlOfFile(std::string_view relative_path) {
  if (!CanBeUrl(relative_path)) return std::nullopt;
  return std::string(relative_path);
}

bool IsPage(std::string_view url) {
  for (const std::string_view name : {url, WithoutQuery(url)}) {
    for (const std::string_view extension : {".html", ".htm", ".xhtml", ".shtml"}) {
      if (name.size() < extension.size()) continue;
      if (EqualsIgnoringCase(name.substr(name.size() - extension.size()), extension)) return true;
    }
  }
  return false;
}

}  // namespace webindex
