// An inverted index in memory: from terms to the documents that have them.
//
// A posting takes eight bytes, and a document four more for each of its terms. Changing a document touches the lists of its
// own terms only: of a term that stays, the posting is overwritten where it is; one that goes away is emptied, and a list that
// is more than half empty is packed; a new document has a larger number than all before, so it goes to the ends of lists.

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

// How often a term is in a document; counts that are too large for their bits are the largest.
struct PackedPosting {
  DocumentId document = 0;
  uint16_t body = 0;
  uint8_t title = 0;
  uint8_t anchors = 0;

  bool empty() const { return body == 0 && title == 0 && anchors == 0; }
};

// Not for several threads at once, unless all of them only read.
class InvertedIndex {
 public:
  struct List {
    std::string_view term;                // in the dictionary
    std::vector<PackedPosting> postings;  // in the order of documents; some are empty
    size_t used = 0;                      // of these, not empty

    // Null: the document does not have the term.
    const PackedPosting* Find(DocumentId document) const;
  };

  // The terms of a document, instead of those it had: `ids`, which the caller keeps, are what the last call has made them.
  void Replace(DocumentId document, const Indexed& terms, std::vector<TermId>& ids);

  // Null: no document has it.
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
  std::vector<TermId> free_;  // in lists_, of no term
  size_t postings_ = 0;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_INVERTED_H_
