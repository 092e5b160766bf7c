// SPDX-License-Identifier: Apache-2.0

// The part of a text that best shows why it matches.

#ifndef PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_
#define PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/webindex/serving.h"

namespace webindex {

inline constexpr size_t kSnippetBytes = 240;
// Bytes of a text that are searched. The snippet of a very long text comes from its first part.
inline constexpr size_t kSnippetScope = 128 << 10;

// Returns about kSnippetBytes of `body`, from where most of `terms` (folded as by TermsOf, sorted) are close together. Marks
// the terms. If the body has none of them, returns the beginning of `otherwise`, or of the body if `otherwise` is empty. Begins
// and ends with whole words, and with "…" where text was left out.
std::vector<Hit::Piece> SnippetOf(std::string_view body, std::string_view otherwise,
                                  const std::vector<std::string>& terms);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_
