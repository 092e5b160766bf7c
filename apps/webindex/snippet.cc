// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/snippet.h"

#include <algorithm>
#include <map>
#include <utility>

#include "apps/webindex/terms.h"

namespace webindex {

namespace {

constexpr std::string_view kEllipsis = "…";

bool IsOneOf(const std::vector<std::string>& sorted, const std::string& term) {
  return std::binary_search(sorted.begin(), sorted.end(), term);
}

// A range of words, by their positions in the list of terms.
struct Window {
  size_t first = 0;
  size_t last = 0;  // included
};

// Returns the best group of words that are terms of the query: the one with the most different terms, and of several the one
// with the most words. `found` has the positions of such words. REQUIRES: it is not empty.
Window BestGroup(const std::vector<Term>& words, const std::vector<size_t>& found) {
  Window best{found[0], found[0]};
  std::pair<size_t, size_t> best_value{0, 0};
  std::map<std::string_view, size_t> inside;
  size_t left = 0;
  for (size_t right = 0; right < found.size(); ++right) {
    ++inside[words[found[right]].text];
    while (words[found[right]].end - words[found[left]].begin > kSnippetBytes && left < right) {
      const auto leaving = inside.find(words[found[left++]].text);
      if (--leaving->second == 0) inside.erase(leaving);
    }
    const std::pair<size_t, size_t> value{inside.size(), right - left};
    if (value > best_value) {
      best_value = value;
      best = {found[left], found[right]};
    }
  }
  return best;
}

// Adds words on both sides while there is room, twice as many after the group as before it.
Window Widen(const std::vector<Term>& words, Window window) {
  const auto bytes = [&](size_t first, size_t last) { return words[last].end - words[first].begin; };
  const size_t group = bytes(window.first, window.last);
  const size_t before = group < kSnippetBytes ? (kSnippetBytes - group) / 3 : 0;
  const size_t begin = window.first;
  while (window.first > 0 && words[begin].begin - words[window.first - 1].begin <= before) --window.first;
  while (window.last + 1 < words.size() && bytes(window.first, window.last + 1) <= kSnippetBytes) ++window.last;
  return window;
}

void Append(std::vector<Hit::Piece>& pieces, std::string_view text, bool marked) {
  if (text.empty()) return;
  if (!pieces.empty() && pieces.back().marked == marked) {
    pieces.back().text += text;
  } else {
    pieces.push_back({std::string(text), marked});
  }
}

std::vector<Hit::Piece> Beginning(std::string_view text) {
  const std::string_view cut = CutAtCharacter(text, kSnippetBytes);
  std::vector<Hit::Piece> pieces;
  Append(pieces, cut, false);
  if (cut.size() < text.size()) Append(pieces, kEllipsis, false);
  return pieces;
}

}  // namespace

std::vector<Hit::Piece> SnippetOf(std::string_view body, std::string_view otherwise,
                                  const std::vector<std::string>& terms) {
  const std::string_view scope = CutAtCharacter(body, kSnippetScope);
  const std::vector<Term> words = TermsOf(scope);
  std::vector<size_t> found;
  for (size_t i = 0; i < words.size(); ++i) {
    if (IsOneOf(terms, words[i].text)) found.push_back(i);
  }
  if (found.empty()) return Beginning(otherwise.empty() ? body : otherwise);

  const Window window = Widen(words, BestGroup(words, found));
  std::vector<Hit::Piece> pieces;
  // A snippet that reaches the first or last word also takes the text before or after it, if that is a few bytes.
  size_t at = words[window.first].begin;
  if (window.first == 0 && at <= kEllipsis.size()) at = 0;
  if (at > 0) Append(pieces, kEllipsis, false);
  for (size_t i = window.first; i <= window.last; ++i) {
    if (!IsOneOf(terms, words[i].text)) continue;
    Append(pieces, scope.substr(at, words[i].begin - at), false);
    Append(pieces, CutAtCharacter(scope.substr(words[i].begin, words[i].end - words[i].begin), kSnippetBytes), true);
    at = words[i].end;
  }
  const bool whole = window.last + 1 == words.size() && scope.size() - words[window.last].end <= kEllipsis.size();
  Append(pieces, scope.substr(at, (whole ? scope.size() : words[window.last].end) - at), false);
  if (!whole || scope.size() < body.size()) Append(pieces, kEllipsis, false);
  return pieces;
}

}  // namespace webindex
