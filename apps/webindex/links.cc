// Links, turned around: who links to a page, and with which words.
//
// Has one input, the links of a page, and one observer of it, whose runs for a page can't overlap. What was inverted before is
// kept, so that only the difference is written: each source has cells of its own, and words are added up by a combine
// queue, so pages that link to the same target never wait for each other.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"

namespace webindex {

using percolator::ReadWrite;

namespace {

using Counts = std::map<std::string, int64_t>;

std::map<std::string, std::vector<std::string>> AnchorsByTarget(const Links& links) {
  std::map<std::string, std::vector<std::string>> anchors;
  for (const Link& link : links.links()) anchors[link.target()].push_back(link.anchor());
  return anchors;
}

void AddWords(const std::vector<std::string>& anchors, int64_t sign, Counts* counts) {
  for (const std::string& anchor : anchors) {
    for (const auto& [term, count] : CountTerms(anchor)) (*counts)[term] += sign * count;
  }
}

// As a delta for the combine queue; empty: there is no difference.
std::string DeltaOf(const Counts& counts) {
  AnchorWords words;
  for (const auto& [term, count] : counts) {
    if (count == 0) continue;
    TermCount* added = words.add_terms();
    added->set_term(term);
    added->set_count(count);
  }
  return words.SerializeAsString();
}

}  // namespace

absl::Status InvertLinks(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<std::vector<Value>> values = t.Get({Cell(kPages, url, kLinks), Cell(kPages, url, kInverted)});
  if (!values.ok()) return values.status();
  const absl::StatusOr<Links> now = MessageIn<Links>((*values)[0]);
  const absl::StatusOr<Links> before = MessageIn<Links>((*values)[1]);
  if (!now.ok()) return now.status();
  if (!before.ok()) return before.status();
  const auto added = AnchorsByTarget(*now);
  const auto removed = AnchorsByTarget(*before);

  std::set<std::string> targets;
  for (const auto& [target, anchors] : added) targets.insert(target);
  for (const auto& [target, anchors] : removed) targets.insert(target);
  std::map<std::string, std::string> deltas;
  for (const std::string& target : targets) {
    const auto has = added.find(target);
    const auto had = removed.find(target);
    if (has != added.end() && had != removed.end() && has->second == had->second) continue;
    Counts words;
    Value anchors;
    if (has != added.end()) {
      AddWords(has->second, 1, &words);
      anchors = absl::StrJoin(has->second, "\n");
    }
    if (had != removed.end()) AddWords(had->second, -1, &words);
    if (absl::Status s = Put(t, kInlinks, PairRow(target, url), kAnchors, anchors); !s.ok()) return s;
    if (std::string delta = DeltaOf(words); !delta.empty()) deltas[target] = std::move(delta);
  }
  if (absl::Status s = AnchorWordsQueue().Add(t, deltas); !s.ok()) return s;
  return Put(t, kPages, url, kInverted, (*values)[0]);
}

// The words of links to the page have changed. They are in the postings of the canonical page of its cluster.
absl::Status ReindexAnchored(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<Value> cluster = t.Get(kPages, url, kCluster);
  if (!cluster.ok() || !cluster->has_value()) return cluster.status();
  const absl::StatusOr<Value> value = t.Get(kClusters, **cluster, kChoice);
  if (!value.ok() || !value->has_value()) return value.status();
  const absl::StatusOr<Choice> choice = MessageIn<Choice>(*value);
  if (!choice.ok()) return choice.status();
  return t.Notify(kPages, choice->canonical(), kReindex);
}

}  // namespace webindex
