// The serving side: documents in memory, searched. It is kept up to date through the export queue and could be another
// program on another machine.

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
  // The part of the text around the terms, in pieces; those marked are terms of the query.
  struct Piece {
    std::string text;
    bool marked = false;
  };
  std::vector<Piece> snippet;
  std::vector<std::string> duplicates;  // other members of the cluster
  std::vector<std::string> similar;     // further hits that are nearly the same, folded into this one
  double score = 0;
  double rank = 0;
};

struct SearchResults {
  size_t matches = 0;              // documents
  size_t total = 0;                // hits that there are, after folding: offsets go up to it
  bool all_terms = true;           // false: no document has all terms of the query, these have some
  std::vector<std::string> terms;  // of the query, as they are looked up
  std::vector<Hit> hits;
};

// Thread-safe.
class Serving {
 public:
  Serving();
  ~Serving();

  // Adds all documents of the tables. What Apply has brought stays as it is: it is newer than the view, or something
  // newer is still on its way, because the queue delivers in order.
  absl::Status Load(const percolator::ReadView& view);

  // What the export queue delivers: a Change. May come again, and late; one older than what was applied before is ignored.
  absl::Status Apply(const percolator::Export& entry);

  // Documents that have all terms of the query, or, if there are none, some; the best first: BM25 over body, title and
  // anchors, times a factor that grows with the rank. `ranks` gives the ranks of urls, as many as it is asked for; it is
  // called once, without a lock held. Only the kRanked best by their text are put in order by rank, and folded: the others
  // follow by their text alone.
  static constexpr size_t kRanked = 400;
  using RankFunction = std::function<std::vector<double>(const std::vector<std::string>& urls)>;
  SearchResults Search(std::string_view query, size_t offset, size_t limit, const RankFunction& ranks) const;

  size_t documents() const;
  size_t terms() const;
  size_t postings() const;

  // From the loading of a file to the moment its document was searchable: the latest ones, with the time (Unix, in
  // microseconds) when that was.
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
