// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/inverted.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace webindex {

namespace {

template <typename Small>
Small Saturated(uint32_t count) {
  return static_cast<Small>(std::min<uint32_t>(count, std::numeric_limits<Small>::max()));
}

PackedPosting Packed(DocumentId document, const Posting& posting) {
  return {document, Saturated<uint16_t>(posting.body()), Saturated<uint8_t>(posting.title()),
          Saturated<uint8_t>(posting.anchors())};
}

// The place of the document's posting, or where to insert it.
template <typename Postings>
auto Place(Postings& postings, DocumentId document) {
  if (!postings.empty() && postings.back().document < document) return postings.end();
  return std::lower_bound(postings.begin(), postings.end(), document,
                          [](const PackedPosting& posting, DocumentId id) { return posting.document < id; });
}

}  // namespace

const PackedPosting* InvertedIndex::List::Find(DocumentId document) const {
  const auto found = Place(postings, document);
  return found == postings.end() || found->document != document || found->empty() ? nullptr : &*found;
}

void InvertedIndex::Replace(DocumentId document, const Indexed& terms, std::vector<TermId>& ids) {
  std::vector<TermId> now;
  now.reserve(terms.terms_size());
  for (const IndexedTerm& term : terms.terms()) {
    const PackedPosting posting = Packed(document, term.posting());
    if (posting.empty()) continue;
    now.push_back(IdOf(term.term()));
    Put(now.back(), posting);
  }
  std::sort(now.begin(), now.end());
  now.erase(std::unique(now.begin(), now.end()), now.end());
  std::vector<TermId> gone;
  std::set_difference(ids.begin(), ids.end(), now.begin(), now.end(), std::back_inserter(gone));
  for (const TermId term : gone) Remove(term, document);
  ids = std::move(now);
  ids.shrink_to_fit();
}

const InvertedIndex::List* InvertedIndex::Find(std::string_view term) const {
  const auto found = dictionary_.find(term);
  return found == dictionary_.end() ? nullptr : &lists_[found->second];
}

TermId InvertedIndex::IdOf(const std::string& term) {
  const auto [at, added] = dictionary_.try_emplace(term, 0);
  if (!added) return at->second;
  if (free_.empty()) {
    free_.push_back(static_cast<TermId>(lists_.size()));
    lists_.emplace_back();
  }
  at->second = free_.back();
  free_.pop_back();
  lists_[at->second].term = at->first;
  return at->second;
}

void InvertedIndex::Put(TermId term, const PackedPosting& posting) {
  List& list = lists_[term];
  auto place = Place(list.postings, posting.document);
  if (place == list.postings.end() || place->document != posting.document) {
    place = list.postings.insert(place, PackedPosting{posting.document});
  }
  if (place->empty()) {
    ++list.used;
    ++postings_;
  }
  *place = posting;
}

void InvertedIndex::Remove(TermId term, DocumentId document) {
  List& list = lists_[term];
  *Place(list.postings, document) = PackedPosting{document};
  --list.used;
  --postings_;
  if (list.used == 0) {
    dictionary_.erase(dictionary_.find(list.term));
    list = List();
    free_.push_back(term);
  } else if (list.used < list.postings.size() / 2) {
    std::erase_if(list.postings, [](const PackedPosting& posting) { return posting.empty(); });
    list.postings.shrink_to_fit();
  }
}

}  // namespace webindex
