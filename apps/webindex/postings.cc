// The inverted index: the postings of canonical pages.
//
// A page is the only one to write postings of its url. What it has written is kept in a cell of its own, `indexed`, so that
// only the difference is written; a page that is not canonical, or gone, takes back all.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"

namespace webindex {

using percolator::CellName;
using percolator::CombineQueue;
using percolator::ReadWrite;
using percolator::Timestamp;

namespace {

using Postings = std::map<std::string, Posting>;

// Adds the terms of a text; returns how many there are. (The parser sees to it that there are not too many.)
uint32_t AddTerms(std::string_view text, void (*add_one)(Posting*), Postings* postings) {
  const std::vector<Term> terms = TermsOf(text);
  for (const Term& term : terms) add_one(&(*postings)[term.text]);
  return static_cast<uint32_t>(terms.size());
}

absl::Status AddAnchors(ReadWrite& t, const Choice& choice, Postings* postings) {
  std::vector<CellName> cells;
  for (const std::string& member : choice.members()) {
    cells.push_back(Cell(kAnchorWords, CombineQueue::ValueRow(member), CombineQueue::kValueColumn));
  }
  const absl::StatusOr<std::vector<Value>> values = t.Get(cells);
  if (!values.ok()) return values.status();
  std::map<std::string, int64_t> counts;
  for (const Value& value : *values) {
    const absl::StatusOr<AnchorWords> words = MessageIn<AnchorWords>(value);
    if (!words.ok()) return words.status();
    for (const TermCount& term : words->terms()) counts[term.term()] += term.count();
  }
  size_t added = 0;
  for (const auto& [term, count] : counts) {
    if (count <= 0) continue;
    if (added++ == kMostAnchorTerms) break;
    (*postings)[term].set_anchors(static_cast<uint32_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<Indexed> MakeDocument(ReadWrite& t, const std::string& url, const Text& text, const Choice& choice) {
  Postings postings;
  Indexed document;
  uint32_t length = AddTerms(
      text.title(), [](Posting* p) { p->set_title(p->title() + 1); }, &postings);
  length += AddTerms(
      text.body(), [](Posting* p) { p->set_body(p->body() + 1); }, &postings);
  if (absl::Status s = AddAnchors(t, choice, &postings); !s.ok()) return s;
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

// The postings, as they are stored, by term.
std::map<std::string, std::string> Rows(const Indexed& document) {
  std::map<std::string, std::string> rows;
  for (const IndexedTerm& term : document.terms()) rows[term.term()] = term.posting().SerializeAsString();
  return rows;
}

absl::Status WriteDifference(ReadWrite& t, const std::string& url, const Indexed& before, const Indexed& now) {
  const std::map<std::string, std::string> had = Rows(before);
  const std::map<std::string, std::string> has = Rows(now);
  for (const auto& [term, posting] : has) {
    const auto old = had.find(term);
    if (old != had.end() && old->second == posting) continue;
    if (absl::Status s = t.Set(kIndex, PairRow(term, url), kPosting, posting); !s.ok()) return s;
  }
  for (const auto& [term, posting] : had) {
    if (has.contains(term)) continue;
    if (absl::Status s = t.Delete(kIndex, PairRow(term, url), kPosting); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ExportChange(ReadWrite& t, const std::string& url, const Indexed& before, const Value& stat,
                          const Indexed* now) {
  const absl::StatusOr<Timestamp> start = t.Start();
  if (!start.ok()) return start.status();
  const absl::StatusOr<FileStat> loaded = MessageIn<FileStat>(stat);
  if (!loaded.ok()) return loaded.status();
  Change change;
  change.set_url(url);
  change.set_version(start->value());
  if (now != nullptr) {
    *change.mutable_document() = *now;
    const bool is_new = before.title() != now->title() || before.body() != now->body();
    if (is_new) change.set_loaded_micros(loaded->loaded_micros());
  }
  return ExportsQueue().Add(t, url, change.SerializeAsString());
}

// What the cluster of the page has chosen; an empty choice, if the page is gone. Absent: the cluster has not chosen since
// the page came to it. It will, and then the page is indexed again.
absl::StatusOr<std::optional<Choice>> ChoiceFor(ReadWrite& t, const std::string& url, const Value& cluster) {
  if (!cluster.has_value()) return Choice();
  const absl::StatusOr<Value> value = t.Get(kClusters, *cluster, kChoice);
  if (!value.ok()) return value.status();
  absl::StatusOr<Choice> choice = MessageIn<Choice>(*value);
  if (!choice.ok()) return choice.status();
  const auto& members = choice->members();
  if (!std::binary_search(members.begin(), members.end(), url)) return std::nullopt;
  return *std::move(choice);
}

}  // namespace

absl::Status IndexDocument(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<std::vector<Value>> values = t.Get(
      {Cell(kPages, url, kCluster), Cell(kPages, url, kText), Cell(kPages, url, kIndexed), Cell(kPages, url, kStat)});
  if (!values.ok()) return values.status();
  const Value &cluster = (*values)[0], &has_text = (*values)[1], &was = (*values)[2], &stat = (*values)[3];
  const absl::StatusOr<std::optional<Choice>> choice = ChoiceFor(t, url, cluster);
  if (!choice.ok()) return choice.status();
  if (!choice->has_value()) return t.Verify(kPages, url, kIndexed);  // stays as it is, until the choice is made
  const absl::StatusOr<Text> text = MessageIn<Text>(has_text);
  const absl::StatusOr<Indexed> before = MessageIn<Indexed>(was);
  if (!text.ok()) return text.status();
  if (!before.ok()) return before.status();

  Value made;
  Indexed now;
  if (has_text.has_value() && (*choice)->canonical() == url) {
    absl::StatusOr<Indexed> document = MakeDocument(t, url, *text, **choice);
    if (!document.ok()) return document.status();
    now = *std::move(document);
    made = now.SerializeAsString();
  }
  if (absl::Status s = PutOrVerify(t, kPages, url, kIndexed, was, made); !s.ok() || made == was) return s;
  if (absl::Status s = WriteDifference(t, url, *before, now); !s.ok()) return s;
  return ExportChange(t, url, *before, stat, made.has_value() ? &now : nullptr);
}

}  // namespace webindex
