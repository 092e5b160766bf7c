// The web index computed anew from a folder, plainly and by one thread: what the incremental one must be equal to.
//
//     BatchIndex batch = ComputeBatch(folder, base);
//     for (const std::string& difference : Differences(batch, snapshot, serving)) ...
//
// Shares with the application how a file is read (UrlOfFile, IsPage, ParsePage, CountTerms) and the names of the cells;
// everything after that is its own.

#ifndef PERCOLATOR_TESTS_WEBINDEX_BATCH_H_
#define PERCOLATOR_TESTS_WEBINDEX_BATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/serving.h"
#include "percolator/transaction.h"

namespace webindex {

// What is in a folder: everything else follows from it.
struct BatchInput {
  struct Page {
    std::string contents;
    int64_t modified_nanos = 0;
    ParsedPage parsed;
  };
  struct File {
    FileState state;
    int64_t modified_nanos = 0;
  };
  std::map<std::string, Page> pages;  // by url
  std::map<std::string, File> files;  // by path: those that are not pages
};

using WordCounts = std::map<std::string, int64_t>;

struct BatchPage {
  std::string cluster;
  std::set<std::string> targets;  // of its links
  double rank = 0;                // exact, but for 1e-12
  Summary summary;
  std::set<std::string> walk;     // the topics it has to hear of: the pages on the way to its cluster
  std::set<std::string> depends;  // and the files it is rendered with
};

struct BatchIndex {
  BatchInput input;
  std::map<std::string, BatchPage> pages;
  std::map<std::string, std::vector<std::string>> clusters;            // members in order, by key
  std::map<std::pair<std::string, std::string>, std::string> inlinks;  // anchors, by target and source
  std::map<std::string, WordCounts> anchor_words;                      // by target, there or not
};

// The files below the folder, read and parsed. A file that is not to be read is left out, as in the index.
BatchInput ReadFolder(const std::string& folder, std::string_view base);

BatchIndex ComputeBatch(BatchInput input);
inline BatchIndex ComputeBatch(const std::string& folder, std::string_view base) {
  return ComputeBatch(ReadFolder(folder, base));
}

// The one of the members that has the highest rank; of several the smallest.
std::string CanonicalOf(const std::vector<std::string>& members, const std::map<std::string, int64_t>& ranks);

// The document of a cluster.
Indexed DocumentOf(const BatchIndex& batch, const std::vector<std::string>& members, const std::string& canonical);

// Everything in which the tables and the serving side differ from the batch, a line each; the first of them if there are
// many. Empty: they are equal. Ranks may differ as much as tables.h says; which page of a cluster is canonical has to be
// right for the ranks that are stored.
std::vector<std::string> Differences(const BatchIndex& batch, const percolator::Snapshot& snapshot,
                                     const Serving& serving);

}  // namespace webindex

#endif  // PERCOLATOR_TESTS_WEBINDEX_BATCH_H_
