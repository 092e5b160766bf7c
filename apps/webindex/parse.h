// SPDX-License-Identifier: Apache-2.0

// Parses an HTML file for the index.
//
// The result depends only on the arguments. Accepts any bytes: content that is not HTML is text, bytes that are not UTF-8 are
// replaced, and content that is too large or too deep is cut, with a note. Time and memory grow linearly with the bytes.

#ifndef PERCOLATOR_APPS_WEBINDEX_PARSE_H_
#define PERCOLATOR_APPS_WEBINDEX_PARSE_H_

#include <cstddef>
#include <string_view>

#include "apps/webindex/document.pb.h"

namespace webindex {

// A page is cut at these limits.
inline constexpr size_t kLargestPage = 4 << 20;  // bytes parsed
inline constexpr size_t kMaxTerms = 8000;        // different terms of the body; each has a posting
inline constexpr size_t kMaxLinks = 4096;        // the first of the page
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
