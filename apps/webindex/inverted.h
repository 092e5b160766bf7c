// SPDX-License-Identifier: Apache-2.0

// An inverted index in memory: from terms to the documents that contain them.
//
// A posting takes eight bytes, and a document four more for each of its terms. A change of a document touches only the lists of
// its terms. The posting of a term that stays is overwritten in place. A removed posting is emptied, and a list that is more
// than half empty is packed. A new document has the largest number, so its postings go to the ends of lists.

#ifndef PERCOLATOR_APPS_WEBINDEX_INVERTED_H_
#define PERCOLATOR_APPS_WEBINDEX_INVERTED_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/webindex/document.pb.h"

namespace webindex {

using DocumentId = uint32_t;
using TermId = uint32_t;

// The counts of a term in a document. A count that is too large for its bits becomes the maximum.
struct PackedPosting {
  DocumentId document = 0;
  uint16_t body = 0;
  uint8_t title = 0;
  uint8_t anchors = 0;

  bool empty() const { return body == 0 && title == 0 && anchors == 0; }
};

// Used by one thread at a time, or by several that only read.
class InvertedIndex {
 public:
  struct List {
    std::string_view term;                // in the dictionary
    std::vector<PackedPosting> postings;  // in the order of documents; some are empty
    size_t used = 0;                      // postings that are not empty

    // Null if the document does not have the term.
    const PackedPosting* Find(DocumentId document) const;
  };

  // Replaces the terms of a document. `ids` belongs to the caller, and holds the result of the last call for the document.
  void Replace(DocumentId document, const Indexed& terms, std::vector<TermId>& ids);

  // Null if no document has the term.
  const List* Find(std::string_view term) const;

  size_t terms() const { return dictionary_.size(); }
  size_t postings() const { return postings_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  TermId IdOf(const std::string& term);
  void Put(TermId term, const PackedPosting& posting);
  void Remove(TermId term, DocumentId document);

  std::unordered_map<std::string, TermId, Hash, std::equal_to<>> dictionary_;
  std::vector<List> lists_;   // by TermId
  std::vector<TermId> free_;  // unused places in lists_
  size_t postings_ = 0;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_INVERTED_H_
