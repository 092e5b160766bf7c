// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/serving.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/inverted.h"
#include "apps/webindex/snippet.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::Export;
using percolator::ReadView;

namespace {

// BM25F: adds the counts of the fields, weighted and normalised by the length of the field, before they saturate.
constexpr double kSaturation = 1.2;
constexpr double kBodyLengthMatters = 0.75;
constexpr double kTitleLengthMatters = 0.5;
constexpr double kTitleWeight = 3;
constexpr double kAnchorWeight = 2;  // of their logarithm: a hundred equal links do not count as a hundred words
constexpr double kRankWeight = 0.3;

constexpr size_t kMaxQueryTerms = 32;
constexpr size_t kKeptLatencies = 2000;
constexpr int kMaxNearBits = 3;  // in which the near keys of two similar documents differ

// The immutable part of a document. A new version is another object, so a search can use it without a lock.
struct Document {
  std::string url;
  std::string title;
  std::string body;
  std::string description;
  std::vector<std::string> members;
  uint64_t near_key = 0;
  uint32_t length = 0;
  uint32_t title_length = 0;
};

std::shared_ptr<const Document> DocumentOf(const Indexed& indexed) {
  auto document = std::make_shared<Document>();
  document->url = indexed.url();
  document->title = indexed.title();
  document->body = indexed.body();
  document->description = indexed.description();
  document->members.assign(indexed.members().begin(), indexed.members().end());
  document->near_key = indexed.near_key();
  document->length = indexed.length();
  for (const IndexedTerm& term : indexed.terms()) document->title_length += term.posting().title();
  return document;
}

struct Candidate {
  std::shared_ptr<const Document> document;
  double score = 0;
  double rank = 0;
  std::vector<std::string> similar;
};

bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.document->url < b.document->url;
}

bool AreNear(const Document& a, const Document& b) {
  return !a.body.empty() && !b.body.empty() && std::popcount(a.near_key ^ b.near_key) <= kMaxNearBits;
}

// Of several similar hits, keeps only the best, which lists the others.
void Fold(std::vector<Candidate>& candidates, size_t first) {
  std::vector<Candidate> kept;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    const auto same = i >= first ? kept.end() : std::find_if(kept.begin(), kept.end(), [&](const Candidate& other) {
      return AreNear(*other.document, *candidate.document);
    });
    if (same == kept.end()) {
      kept.push_back(std::move(candidate));
    } else {
      same->similar.push_back(candidate.document->url);
    }
  }
  candidates = std::move(kept);
}

std::vector<std::string> QueryTerms(std::string_view query) {
  std::set<std::string> terms;
  for (const Term& term : TermsOf(ToValidUtf8(query))) {
    if (terms.size() < kMaxQueryTerms) terms.insert(term.text);
  }
  return {terms.begin(), terms.end()};
}

Hit HitOf(const Candidate& candidate, const std::vector<std::string>& terms) {
  const Document& document = *candidate.document;
  Hit hit;
  hit.url = document.url;
  hit.title = document.title;
  hit.snippet = SnippetOf(document.body, document.description, terms);
  for (const std::string& member : document.members) {
    if (member != document.url) hit.duplicates.push_back(member);
  }
  hit.similar = candidate.similar;
  hit.score = candidate.score;
  hit.rank = candidate.rank;
  return hit;
}

}  // namespace

class Serving::Impl {
 public:
  absl::Status Load(const ReadView& view);
  absl::Status Apply(const Export& entry);
  SearchResults Search(std::string_view query, size_t offset, size_t limit, const RankFunction& ranks) const;

  size_t documents() const {
    const std::shared_lock lock(mutex_);
    return present_;
  }
  size_t terms() const {
    const std::shared_lock lock(mutex_);
    return index_.terms();
  }
  size_t postings() const {
    const std::shared_lock lock(mutex_);
    return index_.postings();
  }
  std::vector<Latency> Latencies() const {
    const std::shared_lock lock(mutex_);
    return {latencies_.begin(), latencies_.end()};
  }

 private:
  using Lists = std::vector<const InvertedIndex::List*>;

  struct Slot {
    std::shared_ptr<const Document> document;  // null if removed; the slot stays, so that a late change is recognised
    std::vector<TermId> terms;
    uint64_t version = 0;  // zero if loaded from the tables
  };

  void Put(Slot& slot, DocumentId id, const Indexed& indexed);
  Slot& SlotOf(const std::string& url, DocumentId& id);
  // Returns all documents that match, with the scores of their text, in no order.
  std::vector<Candidate> Match(const std::vector<std::string>& terms, bool& all_terms) const;
  void MatchAll(const Lists& lists, std::vector<Candidate>& candidates) const;
  void MatchSome(const Lists& lists, std::vector<Candidate>& candidates) const;
  double Score(const InvertedIndex::List& list, const PackedPosting& posting) const;

  mutable std::shared_mutex mutex_;
  // State below is protected by mutex_.
  std::unordered_map<std::string, DocumentId> ids_;
  std::deque<Slot> slots_;  // by DocumentId
  InvertedIndex index_;
  size_t present_ = 0;
  uint64_t total_length_ = 0;
  uint64_t total_title_length_ = 0;
  std::deque<Latency> latencies_;
};

absl::Status Serving::Impl::Load(const ReadView& view) {
  Indexed indexed;  // one for all rows, to reuse its memory
  for (const auto& row : view.Scan(kEncoded<kIndexed>)) {
    PERCOLATOR_RETURN_IF_ERROR(row.status());
    if (!indexed.ParseFromString(row->value)) {
      return absl::DataLossError("pages.indexed of " + row->row + " is not a document");
    }
    if (indexed.url().empty()) continue;
    const std::unique_lock lock(mutex_);
    DocumentId id = 0;
    Slot& slot = SlotOf(indexed.url(), id);
    if (slot.version == 0) Put(slot, id, indexed);
  }
  return absl::OkStatus();
}

absl::Status Serving::Impl::Apply(const Export& entry) {
  Change change;
  if (!change.ParseFromString(entry.payload)) return absl::DataLossError("an exported entry is not a Change");
  const std::unique_lock lock(mutex_);
  DocumentId id = 0;
  Slot& slot = SlotOf(change.url(), id);
  if (change.version() <= slot.version) return absl::OkStatus();
  slot.version = change.version();
  Put(slot, id, change.document());
  if (change.loaded_micros() > 0) {
    const int64_t now = NowMicros();
    latencies_.push_back({now, std::max<int64_t>(0, now - change.loaded_micros())});
    if (latencies_.size() > kKeptLatencies) latencies_.pop_front();
  }
  return absl::OkStatus();
}

Serving::Impl::Slot& Serving::Impl::SlotOf(const std::string& url, DocumentId& id) {
  const auto [at, added] = ids_.try_emplace(url, static_cast<DocumentId>(slots_.size()));
  if (added) slots_.emplace_back();
  id = at->second;
  return slots_[id];
}

void Serving::Impl::Put(Slot& slot, DocumentId id, const Indexed& indexed) {
  if (slot.document != nullptr) {
    --present_;
    total_length_ -= slot.document->length;
    total_title_length_ -= slot.document->title_length;
  }
  index_.Replace(id, indexed, slot.terms);
  slot.document = indexed.url().empty() ? nullptr : DocumentOf(indexed);
  if (slot.document != nullptr) {
    ++present_;
    total_length_ += slot.document->length;
    total_title_length_ += slot.document->title_length;
  }
}

double Serving::Impl::Score(const InvertedIndex::List& list, const PackedPosting& posting) const {
  const Document& document = *slots_[posting.document].document;
  const auto count = static_cast<double>(present_);
  const auto relative = [count](double length, uint64_t total) {
    return total == 0 ? 1 : length * count / static_cast<double>(total);
  };
  const double body_length = relative(document.length, total_length_);
  const double title_length = relative(document.title_length, total_title_length_);
  const double frequency =
      posting.body / (1 - kBodyLengthMatters + kBodyLengthMatters * body_length) +
      kTitleWeight * posting.title / (1 - kTitleLengthMatters + kTitleLengthMatters * title_length) +
      kAnchorWeight * std::log1p(posting.anchors);
  const auto used = static_cast<double>(list.used);
  const double rarity = std::log1p((count - used + 0.5) / (used + 0.5));
  return rarity * frequency * (kSaturation + 1) / (frequency + kSaturation);
}

void Serving::Impl::MatchAll(const Lists& lists, std::vector<Candidate>& candidates) const {
  const auto shortest = std::min_element(
      lists.begin(), lists.end(), [](const auto* a, const auto* b) { return a->postings.size() < b->postings.size(); });
  for (const PackedPosting& first : (*shortest)->postings) {
    if (first.empty()) continue;
    double score = 0;
    const bool has_all = std::all_of(lists.begin(), lists.end(), [&](const InvertedIndex::List* list) {
      const PackedPosting* posting = list->Find(first.document);
      if (posting != nullptr) score += Score(*list, *posting);
      return posting != nullptr;
    });
    if (has_all) candidates.push_back({slots_[first.document].document, score, 0, {}});
  }
}

void Serving::Impl::MatchSome(const Lists& lists, std::vector<Candidate>& candidates) const {
  std::unordered_map<DocumentId, double> scores;
  for (const InvertedIndex::List* list : lists) {
    for (const PackedPosting& posting : list->postings) {
      if (!posting.empty()) scores[posting.document] += Score(*list, posting);
    }
  }
  candidates.reserve(scores.size());
  for (const auto& [id, score] : scores) candidates.push_back({slots_[id].document, score, 0, {}});
}

std::vector<Candidate> Serving::Impl::Match(const std::vector<std::string>& terms, bool& all_terms) const {
  const std::shared_lock lock(mutex_);
  Lists lists;
  for (const std::string& term : terms) {
    if (const InvertedIndex::List* list = index_.Find(term); list != nullptr) lists.push_back(list);
  }
  std::vector<Candidate> candidates;
  if (lists.empty()) return candidates;
  all_terms = lists.size() == terms.size();
  if (all_terms) MatchAll(lists, candidates);
  if (candidates.empty()) {
    all_terms = false;
    MatchSome(lists, candidates);
  }
  return candidates;
}

SearchResults Serving::Impl::Search(std::string_view query, size_t offset, size_t limit,
                                    const RankFunction& ranks) const {
  SearchResults results;
  results.terms = QueryTerms(query);
  std::vector<Candidate> candidates = Match(results.terms, results.all_terms);
  results.matches = candidates.size();
  std::sort(candidates.begin(), candidates.end(), IsBetter);

  const size_t ranked = std::min(candidates.size(), kRanked);
  std::vector<std::string> urls;
  for (size_t i = 0; i < ranked; ++i) urls.push_back(candidates[i].document->url);
  const std::vector<double> rank_of = ranks == nullptr || urls.empty() ? std::vector<double>() : ranks(urls);
  for (size_t i = 0; i < std::min(ranked, rank_of.size()); ++i) {
    candidates[i].rank = rank_of[i];
    candidates[i].score *= 1 + kRankWeight * std::log1p(std::max(0.0, rank_of[i]));
  }
  std::sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(ranked), IsBetter);
  Fold(candidates, ranked);

  results.total = candidates.size();
  const size_t end = std::min(candidates.size(), offset + std::min(limit, candidates.size()));
  for (size_t i = offset; i < end; ++i) results.hits.push_back(HitOf(candidates[i], results.terms));
  return results;
}

Serving::Serving() : impl_(std::make_unique<Impl>()) {}
Serving::~Serving() = default;
absl::Status Serving::Load(const ReadView& view) { return impl_->Load(view); }
absl::Status Serving::Apply(const Export& entry) { return impl_->Apply(entry); }
SearchResults Serving::Search(std::string_view query, size_t offset, size_t limit, const RankFunction& ranks) const {
  return impl_->Search(query, offset, limit, ranks);
}
size_t Serving::documents() const { return impl_->documents(); }
size_t Serving::terms() const { return impl_->terms(); }
size_t Serving::postings() const { return impl_->postings(); }
std::vector<Serving::Latency> Serving::Latencies() const { return impl_->Latencies(); }

}  // namespace webindex
