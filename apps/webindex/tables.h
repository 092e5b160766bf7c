// The tables of the web index.
//
//     table          row               column       what, as a message of document.proto where it says so
//     pages          url               contents     the bytes of the file; absent: there is no such page
//                                      stat         FileStat: as it was loaded
//                                      text         Text            \ .
//                                      identity     Identity         | what the parser made of the contents
//                                      links        Links            |
//                                      resources    Resources       /
//                                      history      History
//                                      walk         the topics it follows to find its cluster, a line each
//                                      cluster      the key of its cluster of duplicates
//                                      inverted     Links: as they were inverted last
//                                      rank         decimal, in units of 1/kRankUnit
//                                      shares       Shares: what of the rank was given to whom
//                                      indexed      Indexed: as its postings are; absent: it is not canonical
//                                      depends      the topics its summary depends on, a line each
//                                      summary      Summary
//                                      recluster    (notify-only) a page on its walk to its cluster has changed
//                                      reindex      (notify-only) something that its postings are made of has changed
//                                      summarize    (notify-only) something that its summary is made of has changed
//     files          path              stat         FileStat: as it was loaded; of files that are not pages
//                                      state        FileState; absent: there is no such file
//     subscribers    topic \0 url      since        the page wants to know when the topic changes
//                    topic             cursor       how far telling them has come; absent: all are told
//                                      publish      (notify-only) go on telling them
//     clusters       key               choice       Choice
//                                      choose       (notify-only) members or their ranks have changed
//     members        key \0 url        member       the page is in the cluster
//     inlinks        target \0 source  anchors      the anchors of these links, a line each
//     index          term \0 url       posting      Posting
//     anchor_words                                  a combine queue: of each page the AnchorWords of links to it
//     ranks          url               received     decimal: the sum of the shares given to it, whether it exists or not
//     rank_changes   shard/epoch       spread       (notify-only) there are changes of these
//                    shard/epoch/id/n  changes      RankChanges: by one transaction, to pages of the shard
//     exports                                       an export queue of Change
//     settings       webindex          base         that links were resolved with
//
// A url is the path of the page's file below the folder that is indexed, with '/' between folders. A topic is "file:PATH",
// changes of a file, or "moved:URL", changes of where a page says it has moved to.

#ifndef PERCOLATOR_APPS_WEBINDEX_TABLES_H_
#define PERCOLATOR_APPS_WEBINDEX_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/export_queue.h"

namespace webindex {

inline constexpr std::string_view kPages = "pages";
inline constexpr std::string_view kContents = "contents";
inline constexpr std::string_view kStat = "stat";
inline constexpr std::string_view kText = "text";
inline constexpr std::string_view kIdentity = "identity";
inline constexpr std::string_view kLinks = "links";
inline constexpr std::string_view kResources = "resources";
inline constexpr std::string_view kHistory = "history";
inline constexpr std::string_view kWalk = "walk";
inline constexpr std::string_view kCluster = "cluster";
inline constexpr std::string_view kInverted = "inverted";
inline constexpr std::string_view kRank = "rank";
inline constexpr std::string_view kShares = "shares";
inline constexpr std::string_view kIndexed = "indexed";
inline constexpr std::string_view kDepends = "depends";
inline constexpr std::string_view kSummary = "summary";
inline constexpr std::string_view kRecluster = "recluster";
inline constexpr std::string_view kReindex = "reindex";
inline constexpr std::string_view kSummarize = "summarize";

inline constexpr std::string_view kFiles = "files";
inline constexpr std::string_view kState = "state";

inline constexpr std::string_view kSubscribers = "subscribers";
inline constexpr std::string_view kSince = "since";
inline constexpr std::string_view kCursor = "cursor";
inline constexpr std::string_view kPublish = "publish";

inline constexpr std::string_view kClusters = "clusters";
inline constexpr std::string_view kChoice = "choice";
inline constexpr std::string_view kChoose = "choose";

inline constexpr std::string_view kMembers = "members";
inline constexpr std::string_view kMember = "member";

inline constexpr std::string_view kInlinks = "inlinks";
inline constexpr std::string_view kAnchors = "anchors";

inline constexpr std::string_view kIndex = "index";
inline constexpr std::string_view kPosting = "posting";

inline constexpr std::string_view kRanks = "ranks";
inline constexpr std::string_view kReceived = "received";

inline constexpr std::string_view kRankChanges = "rank_changes";
inline constexpr std::string_view kSpread = "spread";
inline constexpr std::string_view kChanges = "changes";

inline constexpr std::string_view kSettings = "settings";
inline constexpr std::string_view kSettingsRow = "webindex";
inline constexpr std::string_view kBase = "base";

inline constexpr std::string_view kAnchorWords = "anchor_words";
inline constexpr std::string_view kExports = "exports";

// Limits. What is beyond them is left out.
inline constexpr size_t kKeptVersions = 20;
inline constexpr size_t kMostHops = 8;            // pages on the walk to a cluster
inline constexpr size_t kMostAnchorTerms = 1000;  // of the links to a document: those that come first in their order
// Of all words of the links to a page, which pages with nothing but words made up for it could else fill without end. Many times
// what kMostAnchorTerms takes; those that come first in their order.
inline constexpr size_t kMostAnchorWordsBytes = 2 << 20;

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

// The row of a pair, such as a term and a url, neither with a NUL in it; and the second of a pair.
std::string PairRow(std::string_view first, std::string_view second);
std::string_view SecondOf(std::string_view row);
// All rows that are pairs which begin with `first`.
percolator::RowRange PairsOf(std::string_view first);

percolator::CombineQueue AnchorWordsQueue();
percolator::ExportQueue ExportsQueue();

// Creates those that do not exist.
absl::Status CreateTables(percolator::Cluster& cluster);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TABLES_H_
