// SPDX-License-Identifier: Apache-2.0

// The inverted index: the postings of canonical pages.
//
// Only the observer of a page writes postings of its url. It keeps them in the cell `indexed`, so that it writes only the
// difference. If the page is not canonical, or no longer exists, it removes all of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadView;
using percolator::ReadWrite;
using percolator::Timestamp;

namespace {

using Postings = std::map<std::string, Posting>;

// Adds the terms of a text, which the parser has limited. Returns their number.
uint32_t AddTerms(std::string_view text, void (*add_one)(Posting*), Postings* postings) {
  const std::vector<Term> terms = TermsOf(text);
  for (const Term& term : terms) add_one(&(*postings)[term.text]);
  return static_cast<uint32_t>(terms.size());
}

absl::Status AddAnchors(const ReadView& view, const Choice& choice, Postings* postings) {
  const std::vector<std::string> members(choice.members().begin(), choice.members().end());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<AnchorWords>> words,
                              AnchorWordsQueue().GetMany(view, members));
  std::map<std::string, int64_t> counts;
  for (const std::optional<AnchorWords>& of_member : words) {
    if (!of_member.has_value()) continue;
    for (const TermCount& term : of_member->terms()) counts[term.term()] += term.count();
  }
  size_t added = 0;
  for (const auto& [term, count] : counts) {
    if (count <= 0) continue;
    if (added++ == kMaxAnchorTerms) break;
    (*postings)[term].set_anchors(static_cast<uint32_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<Indexed> MakeDocument(const ReadView& view, const std::string& url, const Text& text,
                                     const Choice& choice) {
  Postings postings;
  Indexed document;
  uint32_t length = AddTerms(
      text.title(), [](Posting* p) { p->set_title(p->title() + 1); }, &postings);
  length += AddTerms(
      text.body(), [](Posting* p) { p->set_body(p->body() + 1); }, &postings);
  PERCOLATOR_RETURN_IF_ERROR(AddAnchors(view, choice, &postings));
  document.set_url(url);
  *document.mutable_members() = choice.members();
  document.set_title(text.title());
  document.set_body(text.body());
  document.set_description(text.description());
  document.set_near_key(text.near_key());
  document.set_length(length);
  for (auto& [term, posting] : postings) {
    IndexedTerm* added = document.add_terms();
    added->set_term(term);
    *added->mutable_posting() = std::move(posting);
  }
  return document;
}

// Returns the stored postings, by term.
std::map<std::string, std::string> EncodedPostings(const Indexed& document) {
  std::map<std::string, std::string> postings;
  for (const IndexedTerm& term : document.terms()) postings[term.term()] = Column<Posting>::Encode(term.posting());
  return postings;
}

void WriteDifference(ReadWrite& t, const std::string& url, const Indexed& before, const Indexed& now) {
  const std::map<std::string, std::string> had = EncodedPostings(before);
  const std::map<std::string, std::string> has = EncodedPostings(now);
  for (const auto& [term, posting] : has) {
    const auto old = had.find(term);
    if (old == had.end() || old->second != posting) t.Set(kEncoded<kPosting>, PairRow(term, url), posting);
  }
  for (const auto& [term, posting] : had) {
    if (!has.contains(term)) t.Delete(kPosting, PairRow(term, url));
  }
}

// `now` is null if the document no longer exists.
absl::Status ExportChange(ReadWrite& t, const std::string& url, const FileStat& stat, const Indexed& before,
                          const Indexed* now) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp start, t.Start());
  Change change;
  change.set_url(url);
  change.set_version(start.value());
  if (now != nullptr) {
    *change.mutable_document() = *now;
    const bool is_new = before.title() != now->title() || before.body() != now->body();
    if (is_new) change.set_loaded_micros(stat.loaded_micros());
  }
  ExportsQueue().Add(t, url, change.SerializeAsString());
  return absl::OkStatus();
}

// Returns the choice of the page's cluster, or an empty choice if the page no longer exists. Returns nullopt if the cluster has
// not chosen since the page joined it; when it does, the page is indexed again.
absl::StatusOr<std::optional<Choice>> ChoiceFor(const ReadView& view, const std::string& url,
                                                const std::optional<std::string>& cluster) {
  if (!cluster.has_value()) return Choice();
  PERCOLATOR_ASSIGN_OR_RETURN(std::optional<Choice> choice, view.Get(kChoice, *cluster));
  const bool chosen = choice.has_value() && std::binary_search(choice->members().begin(), choice->members().end(), url);
  if (!chosen) return std::nullopt;
  return choice;
}

}  // namespace

// Decodes text and document only if needed, because they may be large.
absl::Status IndexDocument(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN((const auto [cluster, text, was, stat]),
                              t.GetColumns(url, kCluster, kEncoded<kText>, kEncoded<kIndexed>, kStat));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Choice> choice, ChoiceFor(t, url, cluster));
  if (!choice.has_value()) {
    t.Verify(kIndexed, url);  // unchanged until the cluster has chosen
    return absl::OkStatus();
  }
  std::optional<std::string> made;
  Indexed now;
  if (text.has_value() && choice->canonical() == url) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Text decoded, kText.Decode(url, *text));
    PERCOLATOR_ASSIGN_OR_RETURN(now, MakeDocument(t, url, decoded, *choice));
    made = Column<Indexed>::Encode(now);
  }
  if (!t.SetOrVerify(kEncoded<kIndexed>, url, was, made)) return absl::OkStatus();
  Indexed before;
  if (was.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(before, kIndexed.Decode(url, *was));
  }
  WriteDifference(t, url, before, now);
  return ExportChange(t, url, stat.value_or(FileStat()), before, made.has_value() ? &now : nullptr);
}

}  // namespace webindex
