// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/tables.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::Cluster;
using percolator::CombineQueue;
using percolator::ExportQueue;
using percolator::RowRange;
using percolator::TableSchema;

namespace {

// Adds counts, term by term. Drops counts of zero, and terms beyond the limit. If a dropped term is subtracted later, its count
// becomes negative; readers skip negative counts.
AnchorWords AddAnchorWords(const AnchorWords& a, const AnchorWords& b) {
  std::map<std::string, int64_t> counts;
  for (const AnchorWords* words : {&a, &b}) {
    for (const TermCount& term : words->terms()) counts[term.term()] += term.count();
  }
  AnchorWords sum;
  constexpr size_t kBytesOfCount = 16;
  size_t bytes = 0;
  for (const auto& [term, count] : counts) {
    if (count == 0) continue;
    bytes += term.size() + kBytesOfCount;
    if (bytes > kMaxAnchorWordsBytes) break;
    TermCount* added = sum.add_terms();
    added->set_term(term);
    added->set_count(count);
  }
  return sum;
}

}  // namespace

std::string Lines::Encode(const Topics& topics) { return absl::StrJoin(topics, "\n"); }

std::optional<Topics> Lines::Decode(std::string_view bytes) { return Topics(absl::StrSplit(std::string(bytes), '\n')); }

CombineQueue<AnchorWords> AnchorWordsQueue() {
  return CombineQueue<AnchorWords>(std::string(kAnchorWords), AddAnchorWords, {.buckets = 16});
}

// The observer that numbers entries scans all entries that were exported within the longest transaction. A crawl exports many,
// and the transactions here take milliseconds.
ExportQueue ExportsQueue() {
  return ExportQueue(std::string(kExports), {.shards = 4, .longest_transaction = std::chrono::seconds(10)});
}

absl::Status CreateTables(const Cluster& cluster) {
  const std::pair<std::string_view, std::vector<NotifyColumn>> tables[] = {
      {kPages, {kRecluster, kReindex, kSummarize}},
      {kFiles, {}},
      {kSubscribers, {kPublish}},
      {kClusters, {kChoose}},
      {kMembers, {}},
      {kInlinks, {}},
      {kIndex, {}},
      {kSettings, {}},
      {kRanks, {}},
      {kRankChanges, {kSpread}},
  };
  for (const auto& [name, notified] : tables) {
    TableSchema schema;
    for (const NotifyColumn& column : notified) schema.notify_only_columns.emplace_back(column.name());
    PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable(name, schema));
  }
  PERCOLATOR_RETURN_IF_ERROR(AnchorWordsQueue().EnsureTable(cluster));
  return ExportsQueue().EnsureTable(cluster);
}

std::string PairRow(std::string_view first, std::string_view second) {
  std::string row(first);
  row.push_back('\0');
  row.append(second);
  return row;
}

std::string_view SecondOf(std::string_view row) { return row.substr(row.find('\0') + 1); }

RowRange PairsOf(std::string_view first) { return RowRange::Prefix(PairRow(first, "")); }

}  // namespace webindex
