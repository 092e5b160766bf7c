// SPDX-License-Identifier: Apache-2.0

// Inverts links: for each page, the pages that link to it, and the words of these links.
//
// It has one input, the links of a page, with one observer, whose runs for a page cannot overlap. It keeps the links that it has
// inverted, so that it writes only the difference. Each source has its own cells, and a combine queue sums the words, so pages
// that link to the same target do not conflict.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadWrite;

namespace {

using Counts = std::map<std::string, int64_t>;

std::map<std::string, std::vector<std::string>> AnchorsByTarget(const std::optional<Links>& links) {
  std::map<std::string, std::vector<std::string>> anchors;
  if (!links.has_value()) return anchors;
  for (const Link& link : links->links()) anchors[link.target()].push_back(link.anchor());
  return anchors;
}

void AddWords(const std::vector<std::string>& anchors, int64_t sign, Counts* counts) {
  for (const std::string& anchor : anchors) {
    for (const auto& [term, count] : CountTerms(anchor)) (*counts)[term] += sign * count;
  }
}

// Returns a delta for the combine queue.
AnchorWords DeltaOf(const Counts& counts) {
  AnchorWords words;
  for (const auto& [term, count] : counts) {
    if (count == 0) continue;
    TermCount* added = words.add_terms();
    added->set_term(term);
    added->set_count(count);
  }
  return words;
}

}  // namespace

absl::Status InvertLinks(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN((const auto [links, inverted]), t.GetColumns(url, kLinks, kInverted));
  const auto added = AnchorsByTarget(links);
  const auto removed = AnchorsByTarget(inverted);

  std::set<std::string> targets;
  for (const auto& [target, anchors] : added) targets.insert(target);
  for (const auto& [target, anchors] : removed) targets.insert(target);
  std::map<std::string, AnchorWords> deltas;
  for (const std::string& target : targets) {
    const auto has = added.find(target);
    const auto had = removed.find(target);
    if (has != added.end() && had != removed.end() && has->second == had->second) continue;
    Counts words;
    std::optional<std::string> anchors;
    if (has != added.end()) {
      AddWords(has->second, 1, &words);
      anchors = absl::StrJoin(has->second, "\n");
    }
    if (had != removed.end()) AddWords(had->second, -1, &words);
    t.SetOrDelete(kAnchors, PairRow(target, url), anchors);
    if (AnchorWords delta = DeltaOf(words); !delta.terms().empty()) deltas[target] = std::move(delta);
  }
  AnchorWordsQueue().Add(t, deltas);
  t.SetOrDelete(kInverted, url, links);
  return absl::OkStatus();
}

// Runs when the words of links to the page have changed. The postings of the canonical page of its cluster contain them.
absl::Status ReindexAnchored(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> cluster, t.Get(kCluster, url));
  if (!cluster.has_value()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Choice> choice, t.Get(kChoice, *cluster));
  if (choice.has_value()) t.Notify(kReindex, choice->canonical());
  return absl::OkStatus();
}

}  // namespace webindex
