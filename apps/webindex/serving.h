// SPDX-License-Identifier: Apache-2.0

// The serving side: searches documents in memory. The export queue keeps it up to date, so it could be a program on another
// machine.

#ifndef PERCOLATOR_APPS_WEBINDEX_SERVING_H_
#define PERCOLATOR_APPS_WEBINDEX_SERVING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "percolator/export_queue.h"
#include "percolator/transaction.h"

namespace webindex {

struct Hit {
  std::string url;
  std::string title;
  // The part of the text around the terms, in pieces. Marked pieces are terms of the query.
  struct Piece {
    std::string text;
    bool marked = false;
  };
  std::vector<Piece> snippet;
  std::vector<std::string> duplicates;  // other members of the cluster
  std::vector<std::string> similar;     // similar hits, folded into this one
  double score = 0;
  double rank = 0;
};

struct SearchResults {
  size_t matches = 0;              // documents
  size_t total = 0;                // hits after folding; the limit of the offset
  bool all_terms = true;           // false if no document has all terms of the query; the hits have some
  std::vector<std::string> terms;  // of the query, folded
  std::vector<Hit> hits;
};

// Thread-safe.
class Serving {
 public:
  Serving();
  ~Serving();

  // Adds all documents of the tables, except those that Apply has changed: these are newer than the view, or a newer change
  // will be delivered, because the queue delivers in order.
  absl::Status Load(const percolator::ReadView& view);

  // Applies a Change that the export queue delivers. A change may come twice or late. One that is older than an applied change
  // is ignored.
  absl::Status Apply(const percolator::Export& entry);

  // Returns the documents with all terms of the query, or those with some if none has all. The best come first: BM25 over body,
  // title and anchors, times a factor that grows with the rank. `ranks` returns the rank of each url; it is called once, without
  // a lock held. Only the kRanked best by text are ordered by rank and folded. The others follow, ordered by text alone.
  static constexpr size_t kRanked = 400;
  using RankFunction = std::function<std::vector<double>(const std::vector<std::string>& urls)>;
  SearchResults Search(std::string_view query, size_t offset, size_t limit, const RankFunction& ranks) const;

  size_t documents() const;
  size_t terms() const;
  size_t postings() const;

  // The latest durations from loading a file until its document was searchable, each with its end (Unix time in
  // microseconds).
  struct Latency {
    int64_t at_micros = 0;
    int64_t micros = 0;
  };
  std::vector<Latency> Latencies() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_SERVING_H_
