// SPDX-License-Identifier: Apache-2.0

// Urls of pages: paths below the indexed folder.
//
// A file a/b.html below the folder is the page "a/b.html". A link leads to a page if it is relative, or begins with the base,
// the address of the folder on the web (such as "https://docs.example.org/"). All other links are outside: other hosts, other
// schemes, and paths that climb above the base.

#ifndef PERCOLATOR_APPS_WEBINDEX_URL_H_
#define PERCOLATOR_APPS_WEBINDEX_URL_H_

#include <optional>
#include <string>
#include <string_view>

namespace webindex {

// The maximum bytes of a url. A row contains up to two urls or a url and a term.
inline constexpr size_t kLongestUrl = 1024;

// Resolves a link in `page` to a path without ".", "..", "//", fragment and needless %-escapes. "x/" becomes "x/index.html", and
// the base itself "index.html". A query stays, because crawlers keep it in the name of the file. Returns nullopt if the link is
// outside or too long.
std::optional<std::string> ResolveLink(std::string_view base, std::string_view page, std::string_view link);

// Returns the url of a file from its path relative to the folder, or nullopt if no link could name it: not UTF-8, with NUL or
// newline, or too long.
std::optional<std::string> UrlOfFile(std::string_view relative_path);

// Returns true for the name of an HTML file: .html, .htm, .xhtml or .shtml, also before a query.
bool IsPage(std::string_view url);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_URL_H_
