// The tables of the web index and their columns. document.proto has the messages.
//
// A url is the path of a page's file below the folder that is indexed, with '/' between folders. A topic is
// "file:PATH", changes of a file, or "moved:URL", changes of where a page says it has moved to. A row of two names is a
// PairRow.

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
inline constexpr Column<std::string> kContents(kPages, "contents");  // the bytes of the file; absent: no such page
inline constexpr Column<FileStat> kStat(kPages, "stat");             // the file when it was loaded
// What the parser made of the contents.
inline constexpr Column<Text> kText(kPages, "text");
inline constexpr Column<Identity> kIdentity(kPages, "identity");
inline constexpr Column<Links> kLinks(kPages, "links");
inline constexpr Column<Resources> kResources(kPages, "resources");
inline constexpr Column<History> kHistory(kPages, "history");
// What other observers made of that.
inline constexpr Column<Topics, Lines> kWalk(kPages, "walk");        // topics it follows to find its cluster
inline constexpr Column<std::string> kCluster(kPages, "cluster");    // the key of its cluster of duplicates
inline constexpr Column<Links> kInverted(kPages, "inverted");        // the links that were inverted last
inline constexpr Column<int64_t> kRank(kPages, "rank");              // in units of 1/kRankUnit
inline constexpr Column<Shares> kShares(kPages, "shares");           // what it gave away of its rank
inline constexpr Column<Indexed> kIndexed(kPages, "indexed");        // as its postings are; absent: not canonical
inline constexpr Column<Topics, Lines> kDepends(kPages, "depends");  // topics its summary depends on
inline constexpr Column<Summary> kSummary(kPages, "summary");
inline constexpr NotifyColumn kRecluster(kPages, "recluster");  // a page on the walk to its cluster has changed
inline constexpr NotifyColumn kReindex(kPages, "reindex");      // something its postings are made of has changed
inline constexpr NotifyColumn kSummarize(kPages, "summarize");  // something its summary is made of has changed

// A row for each path of a file that is not a page.
inline constexpr std::string_view kFiles = "files";
inline constexpr Column<FileStat> kFileStat(kFiles, "stat");  // the file when it was loaded
inline constexpr Column<FileState> kState(kFiles, "state");   // absent: no such file

// A row for each topic, and for each pair of a topic and a url.
inline constexpr std::string_view kSubscribers = "subscribers";
inline constexpr Column<bool> kSince(kSubscribers, "since");           // the page wants to know when the topic changes
inline constexpr Column<std::string> kCursor(kSubscribers, "cursor");  // the page told last; absent: all are told
inline constexpr NotifyColumn kPublish(kSubscribers, "publish");       // go on telling pages

// A row for each key of a cluster of duplicates.
inline constexpr std::string_view kClusters = "clusters";
inline constexpr Column<Choice> kChoice(kClusters, "choice");
inline constexpr NotifyColumn kChoose(kClusters, "choose");  // members or their ranks have changed

// A row for each pair of a key of a cluster and a url.
inline constexpr std::string_view kMembers = "members";
inline constexpr Column<bool> kMember(kMembers, "member");

// A row for each pair of a target and a source.
inline constexpr std::string_view kInlinks = "inlinks";
inline constexpr Column<std::string> kAnchors(kInlinks, "anchors");  // of these links, one per line

// A row for each pair of a term and a url.
inline constexpr std::string_view kIndex = "index";
inline constexpr Column<Posting> kPosting(kIndex, "posting");

// A row for each url, whether the page exists or not.
inline constexpr std::string_view kRanks = "ranks";
inline constexpr Column<int64_t> kReceived(kRanks, "received");  // the sum of the shares given to it

// A row for each shard/epoch, and for each shard/epoch/id/n.
inline constexpr std::string_view kRankChanges = "rank_changes";
inline constexpr NotifyColumn kSpread(kRankChanges, "spread");           // of shard/epoch: it has changes
inline constexpr Column<RankChanges> kChanges(kRankChanges, "changes");  // by one transaction, of pages of the shard

inline constexpr std::string_view kSettings = "settings";
inline constexpr std::string_view kSettingsRow = "webindex";
inline constexpr Column<std::string> kBase(kSettings, "base");  // that links were resolved with

// The words of all links to each url.
inline constexpr std::string_view kAnchorWords = "anchor_words";
percolator::CombineQueue<AnchorWords> AnchorWordsQueue();

// Every Change of a document.
inline constexpr std::string_view kExports = "exports";
percolator::ExportQueue ExportsQueue();

// The same column as bytes, for values that are compared or copied without being decoded: kEncoded<kText>.
template <const auto& kColumn>
inline constexpr Column<std::string> kEncoded(kColumn.table(), kColumn.name());

// Creates the tables that do not exist.
absl::Status CreateTables(const percolator::Cluster& cluster);

// The row of a pair, such as a term and a url, neither with a NUL in it; and the second of a pair.
std::string PairRow(std::string_view first, std::string_view second);
std::string_view SecondOf(std::string_view row);
// All rows that are pairs which begin with `first`.
percolator::RowRange PairsOf(std::string_view first);

// The time of day in microseconds since 1970, as messages have it.
inline int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Limits. What is beyond them is left out.
inline constexpr size_t kKeptVersions = 20;
inline constexpr size_t kMaxHops = 8;            // pages on the walk to a cluster
inline constexpr size_t kMaxAnchorTerms = 1000;  // of the links to a document: those that come first in their order
// Of all words of the links to a page; otherwise pages of made-up words could fill it without end. Many times what
// kMaxAnchorTerms takes; those that come first in their order.
inline constexpr size_t kMaxAnchorWordsBytes = 2 << 20;

// --- Ranks: PageRank as Brin and Page wrote it first, not divided by the number of pages, so that a page which is added
// far away changes nothing here:
//
//     rank(p) = (1 - kDamping) + kDamping * sum of rank(q) / outdegree(q) over the pages q that link to p
//
// The out-degree counts distinct targets, whether they exist or not; what goes to one that does not exist is lost.
inline constexpr int64_t kRankUnit = 1'000'000'000;
inline constexpr double kDamping = 0.85;
// A page whose rank has changed by more than this, since it gave its shares away, gives the difference away. So the rank of
// every page is within kRankTolerance / (1 - kDamping) of the true one, relative to that, and kRankTolerance above it: see
// rank.cc.
inline constexpr double kRankTolerance = 0.002;

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TABLES_H_
