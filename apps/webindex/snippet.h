// The part of a text that shows best why it was found.

#ifndef PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_
#define PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/webindex/serving.h"

namespace webindex {

inline constexpr size_t kSnippetBytes = 240;
// Bytes of a text that are looked at: a snippet of a very long one comes from its first part.
inline constexpr size_t kSnippetScope = 128 << 10;

// About kSnippetBytes of `body`, where the most of `terms` (as TermsOf folds them, in order) are close together, these
// marked; the beginning of `otherwise`, or else of the body, if none is there. Begins and ends with whole words, and with
// "…" where something was left out.
std::vector<Hit::Piece> SnippetOf(std::string_view body, std::string_view otherwise,
                                  const std::vector<std::string>& terms);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_SNIPPET_H_
