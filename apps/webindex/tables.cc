#include "apps/webindex/tables.h"

#include <chrono>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/webindex/document.pb.h"

namespace webindex {

using percolator::Cluster;
using percolator::CombineQueue;
using percolator::ExportQueue;
using percolator::RowRange;
using percolator::TableSchema;

namespace {

// Adds counts, term by term. What comes to zero is left out, and so is what is beyond the limit. If the same is subtracted later,
// its count is less than nothing: whoever reads counts passes those over.
absl::StatusOr<std::string> AddAnchorWords(std::string_view a, std::string_view b) {
  std::map<std::string, int64_t> counts;
  for (const std::string_view bytes : {a, b}) {
    AnchorWords words;
    if (!words.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return absl::DataLossError("not a list of words and counts");
    }
    for (const TermCount& term : words.terms()) counts[term.term()] += term.count();
  }
  AnchorWords sum;
  constexpr size_t kBytesOfCount = 16;
  size_t bytes = 0;
  for (const auto& [term, count] : counts) {
    if (count == 0) continue;
    bytes += term.size() + kBytesOfCount;
    if (bytes > kMostAnchorWordsBytes) break;
    TermCount* added = sum.add_terms();
    added->set_term(term);
    added->set_count(count);
  }
  return sum.SerializeAsString();
}

}  // namespace

std::string PairRow(std::string_view first, std::string_view second) {
  std::string row(first);
  row.push_back('\0');
  row.append(second);
  return row;
}

std::string_view SecondOf(std::string_view row) { return row.substr(row.find('\0') + 1); }

RowRange PairsOf(std::string_view first) { return RowRange::Prefix(PairRow(first, "")); }

CombineQueue AnchorWordsQueue() {
  return CombineQueue(std::string(kAnchorWords), AddAnchorWords, {.buckets = 16, .neutral = ""});
}

// Whoever gives numbers passes over all that was exported in the time that the longest transaction may take: a crawl exports
// much, and ours take milliseconds.
ExportQueue ExportsQueue() {
  return ExportQueue(std::string(kExports), {.shards = 4, .longest_transaction = std::chrono::seconds(10)});
}

absl::Status CreateTables(Cluster& cluster) {
  const auto names = [](std::initializer_list<std::string_view> columns) {
    TableSchema schema;
    for (const std::string_view column : columns) schema.notify_only_columns.emplace_back(column);
    return schema;
  };
  const std::vector<std::pair<std::string_view, TableSchema>> tables = {
      {kPages, names({kRecluster, kReindex, kSummarize})},
      {kFiles, {}},
      {kSubscribers, names({kPublish})},
      {kClusters, names({kChoose})},
      {kMembers, {}},
      {kInlinks, {}},
      {kIndex, {}},
      {kSettings, {}},
      {kAnchorWords, CombineQueue::Schema()},
      {kRanks, {}},
      {kRankChanges, names({kSpread})},
      {kExports, ExportQueue::Schema()},
  };
  for (const auto& [name, schema] : tables) {
    const absl::Status created = cluster.CreateTable(name, schema);
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  }
  return absl::OkStatus();
}

}  // namespace webindex
