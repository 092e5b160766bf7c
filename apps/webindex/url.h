// The names of pages: paths below the folder that is indexed, as links lead to them.
//
// A file a/b.html below the folder is the page "a/b.html". A link leads to a page if it is relative, or begins with the base
// (such as "https://docs.example.org/"), under which the folder would be found on the web. Everything else, other hosts,
// other schemes, paths that climb above the base, is outside and leads nowhere.

#ifndef PERCOLATOR_APPS_WEBINDEX_URL_H_
#define PERCOLATOR_APPS_WEBINDEX_URL_H_

#include <optional>
#include <string>
#include <string_view>

namespace webindex {

// Bytes of a url, at most: with a second one and a term it makes a row.
inline constexpr size_t kLongestUrl = 1024;

// Where a link in `page` leads: a path without "." and "..", "//", fragment and needless %-escapes; "x/" becomes
// "x/index.html" and the base itself "index.html". A query, if there is one, stays, because crawlers keep it in the name of
// the file. Absent: outside, or too long.
std::optional<std::string> ResolveLink(std::string_view base, std::string_view page, std::string_view link);

// The url of a file from its path relative to the folder. Absent: it has no name that a link could lead to (not UTF-8, NUL or
// newline in it, too long).
std::optional<std::string> UrlOfFile(std::string_view relative_path);

// A file of HTML, by its name: .html, .htm, .xhtml, .shtml, or these before a query.
bool IsPage(std::string_view url);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_URL_H_
