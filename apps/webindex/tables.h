// SPDX-License-Identifier: Apache-2.0

// The tables of the web index and their columns. document.proto has the messages.
//
// A url is the path of a page's file below the indexed folder, with '/' between folders. A topic is "file:PATH" for changes of
// a file, or "moved:URL" for changes of the page that a page has moved to. A row of two names is a PairRow.

#ifndef PERCOLATOR_APPS_WEBINDEX_TABLES_H_
#define PERCOLATOR_APPS_WEBINDEX_TABLES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "apps/webindex/document.pb.h"
#include "percolator/cluster.h"
#include "percolator/column.h"
#include "percolator/combine_queue.h"
#include "percolator/export_queue.h"
#include "percolator/types.h"

namespace webindex {

using percolator::Column;
using percolator::NotifyColumn;

// Topics are stored one per line.
using Topics = std::set<std::string>;
struct Lines {
  using Param = const Topics&;
  static std::string Encode(const Topics& topics);
  static std::optional<Topics> Decode(std::string_view bytes);
};

// A row for each url.
inline constexpr std::string_view kPages = "pages";
inline constexpr Column<std::string> kContents(kPages, "contents");  // the bytes of the file; absent if no such page
inline constexpr Column<FileStat> kStat(kPages, "stat");             // the file when it was loaded
// Written by the parser.
inline constexpr Column<Text> kText(kPages, "text");
inline constexpr Column<Identity> kIdentity(kPages, "identity");
inline constexpr Column<Links> kLinks(kPages, "links");
inline constexpr Column<Resources> kResources(kPages, "resources");
inline constexpr Column<History> kHistory(kPages, "history");
// Written by other observers.
inline constexpr Column<Topics, Lines> kWalk(kPages, "walk");      // topics it follows to find its cluster
inline constexpr Column<std::string> kCluster(kPages, "cluster");  // the key of its cluster of duplicates
inline constexpr Column<Links> kInverted(kPages, "inverted");      // the links that were inverted last
inline constexpr Column<int64_t> kRank(kPages, "rank");            // in units of 1/kRankUnit
inline constexpr Column<Shares> kShares(kPages, "shares");         // what it has given of its rank
inline constexpr Column<Indexed> kIndexed(kPages,
                                          "indexed");  // equal to its postings; absent if the page is not canonical
inline constexpr Column<Topics, Lines> kDepends(kPages, "depends");  // topics its summary depends on
inline constexpr Column<Summary> kSummary(kPages, "summary");
inline constexpr NotifyColumn kRecluster(kPages, "recluster");  // a page on the walk to its cluster has changed
inline constexpr NotifyColumn kReindex(kPages, "reindex");      // an input of its postings has changed
inline constexpr NotifyColumn kSummarize(kPages, "summarize");  // an input of its summary has changed

// A row for each path of a file that is not a page.
inline constexpr std::string_view kFiles = "files";
inline constexpr Column<FileStat> kFileStat(kFiles, "stat");  // the file when it was loaded
inline constexpr Column<FileState> kState(kFiles, "state");   // absent if there is no such file

// A row for each topic, and for each pair of a topic and a url.
inline constexpr std::string_view kSubscribers = "subscribers";
inline constexpr Column<bool> kSince(kSubscribers, "since");  // the page has subscribed to the topic
inline constexpr Column<std::string> kCursor(kSubscribers,
                                             "cursor");           // the last notified page; absent if all are notified
inline constexpr NotifyColumn kPublish(kSubscribers, "publish");  // notify the next batch

// A row for each key of a cluster of duplicates.
inline constexpr std::string_view kClusters = "clusters";
inline constexpr Column<Choice> kChoice(kClusters, "choice");
inline constexpr NotifyColumn kChoose(kClusters, "choose");  // members or their ranks have changed

// A row for each pair of a key of a cluster and a url.
inline constexpr std::string_view kMembers = "members";
inline constexpr Column<bool> kMember(kMembers, "member");

// A row for each pair of a target and a source.
inline constexpr std::string_view kInlinks = "inlinks";
inline constexpr Column<std::string> kAnchors(kInlinks, "anchors");  // the anchors of these links, one per line

// A row for each pair of a term and a url.
inline constexpr std::string_view kIndex = "index";
inline constexpr Column<Posting> kPosting(kIndex, "posting");

// A row for each url, whether the page exists or not.
inline constexpr std::string_view kRanks = "ranks";
inline constexpr Column<int64_t> kReceived(kRanks, "received");  // the sum of the shares given to it

// A row for each shard/epoch, and for each shard/epoch/id/n.
inline constexpr std::string_view kRankChanges = "rank_changes";
inline constexpr NotifyColumn kSpread(kRankChanges, "spread");           // the shard/epoch has changes
inline constexpr Column<RankChanges> kChanges(kRankChanges, "changes");  // of pages of the shard, by one transaction

inline constexpr std::string_view kSettings = "settings";
inline constexpr std::string_view kSettingsRow = "webindex";
inline constexpr Column<std::string> kBase(kSettings, "base");  // the base that links were resolved with

// The words of all links to each url.
inline constexpr std::string_view kAnchorWords = "anchor_words";
percolator::CombineQueue<AnchorWords> AnchorWordsQueue();

// The exported changes of documents (Change).
inline constexpr std::string_view kExports = "exports";
percolator::ExportQueue ExportsQueue();

// The same column as bytes, to compare or copy values without decoding them: kEncoded<kText>.
template <const auto& kColumn>
inline constexpr Column<std::string> kEncoded(kColumn.table(), kColumn.name());

// Creates the tables that do not exist.
absl::Status CreateTables(const percolator::Cluster& cluster);

// The row of a pair, such as a term and a url, and the second name of a pair. REQUIRES: no name contains a NUL.
std::string PairRow(std::string_view first, std::string_view second);
std::string_view SecondOf(std::string_view row);
// The rows of all pairs that begin with `first`.
percolator::RowRange PairsOf(std::string_view first);

// The time in microseconds since 1970, as in the messages.
inline int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Limits. Anything beyond them is left out.
inline constexpr size_t kKeptVersions = 20;
inline constexpr size_t kMaxHops = 8;            // pages on the walk to a cluster
inline constexpr size_t kMaxAnchorTerms = 1000;  // of the links to a document; the first in sorted order
// Limits the words of all links to a page, because pages with made-up words could make it grow without limit. Many times what
// kMaxAnchorTerms needs. Keeps the first in sorted order.
inline constexpr size_t kMaxAnchorWordsBytes = 2 << 20;

// --- Ranks: PageRank as Brin and Page first wrote it, not divided by the number of pages, so that a new page changes nothing
// far away:
//
//     rank(p) = (1 - kDamping) + kDamping * sum of rank(q) / outdegree(q) over the pages q that link to p
//
// The out-degree counts distinct targets, whether they exist or not. A share to a page that does not exist is lost.
inline constexpr int64_t kRankUnit = 1'000'000'000;
inline constexpr double kDamping = 0.85;
// When the rank of a page has changed by more than this since it last gave its shares, it gives the difference. So the relative
// error of a rank is at most kRankTolerance / (1 - kDamping), plus an absolute kRankTolerance: see rank.cc.
inline constexpr double kRankTolerance = 0.002;

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TABLES_H_
