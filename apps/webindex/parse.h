// From the bytes of an HTML file to what the index needs of it.
//
// A function of its arguments alone. Takes any bytes: what is not HTML is text, what is not UTF-8 is replaced, what is too
// large or too deep is cut, with a note; it takes time and memory in proportion to the bytes.

#ifndef PERCOLATOR_APPS_WEBINDEX_PARSE_H_
#define PERCOLATOR_APPS_WEBINDEX_PARSE_H_

#include <cstddef>
#include <string_view>

#include "apps/webindex/document.pb.h"

namespace webindex {

// Beyond these a page is cut.
inline constexpr size_t kLargestPage = 4 << 20;  // bytes parsed
inline constexpr size_t kMaxTerms = 8000;        // different ones of the body: a posting is written for each
inline constexpr size_t kMaxLinks = 4096;        // links, in the order of the page
inline constexpr size_t kMaxResources = 1024;
inline constexpr size_t kLongestAnchor = 256;  // bytes
inline constexpr size_t kLongestTitle = 512;   // bytes
inline constexpr size_t kLongestDescription = 1024;

struct ParsedPage {
  Text text;
  Identity identity;
  Links links;
  Resources resources;
};

ParsedPage ParsePage(std::string_view base, std::string_view url, std::string_view contents);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_PARSE_H_
