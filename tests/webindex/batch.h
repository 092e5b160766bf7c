// SPDX-License-Identifier: Apache-2.0

// The web index computed from a folder from scratch, plainly and by one thread. The incremental index must be equal to
// it.
//
//     BatchIndex batch = ComputeBatch(folder, base);
//     for (const std::string& difference : Differences(batch, snapshot, serving)) ...
//
// It shares with the application how a file is read (UrlOfFile, IsPage, ParsePage, CountTerms) and the names of the
// cells. Everything else is its own.

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

// The content of a folder, which determines everything else.
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
  std::map<std::string, File> files;  // by path; without pages
};

using WordCounts = std::map<std::string, int64_t>;

struct BatchPage {
  std::string cluster;
  std::set<std::string> targets;  // of its links
  double rank = 0;                // exact to 1e-12
  Summary summary;
  std::set<std::string> walk;     // its topics: the pages on the way to its cluster
  std::set<std::string> depends;  // the files with which it is rendered
};

struct BatchIndex {
  BatchInput input;
  std::map<std::string, BatchPage> pages;
  std::map<std::string, std::vector<std::string>> clusters;            // members in order, by key
  std::map<std::pair<std::string, std::string>, std::string> inlinks;  // anchors, by target and source
  std::map<std::string, WordCounts> anchor_words;                      // by target, existing or not
};

// The files below the folder, read and parsed. Files that the index skips are omitted.
BatchInput ReadFolder(const std::string& folder, std::string_view base);

BatchIndex ComputeBatch(BatchInput input);
inline BatchIndex ComputeBatch(const std::string& folder, std::string_view base) {
  return ComputeBatch(ReadFolder(folder, base));
}

// The member with the highest rank; of several the smallest.
std::string CanonicalOf(const std::vector<std::string>& members, const std::map<std::string, int64_t>& ranks);

// The document of a cluster.
Indexed DocumentOf(const BatchIndex& batch, const std::vector<std::string>& members, const std::string& canonical);

// The differences of the tables and the serving side from the batch, a line each; only the first if there are many.
// Empty if they are equal. Ranks may differ within the tolerance of tables.h; the canonical page of a cluster must
// agree with the stored ranks.
std::vector<std::string> Differences(const BatchIndex& batch, const percolator::Snapshot& snapshot,
                                     const Serving& serving);

}  // namespace webindex

#endif  // PERCOLATOR_TESTS_WEBINDEX_BATCH_H_
