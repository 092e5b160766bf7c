#include "apps/webindex/api.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/tables.h"

namespace webindex {

using nlohmann::json;
using percolator::CellName;
using percolator::Cluster;
using percolator::ReadView;
using percolator::RowIterator;
using percolator::Snapshot;
using percolator::Worker;

namespace {

// Counting again is worth a tenth of the time at most.
constexpr int kRestAfterCounting = 9;
constexpr auto kCountedFor = std::chrono::seconds(1);

json HitJson(const Hit& hit) {
  json snippet = json::array();
  for (const Hit::Piece& piece : hit.snippet) snippet.push_back({{"text", piece.text}, {"marked", piece.marked}});
  return {{"url", hit.url},     {"title", hit.title},           {"snippet", std::move(snippet)},
          {"score", hit.score}, {"duplicates", hit.duplicates}, {"similar", hit.similar},
          {"rank", hit.rank}};
}

absl::StatusOr<uint64_t> RowsWith(ReadView& view, std::string_view table, std::string_view column) {
  const std::unique_ptr<RowIterator> rows = view.Scan({.table = std::string(table), .columns = {std::string(column)}});
  uint64_t count = 0;
  while (rows->Next()) ++count;
  if (!rows->status().ok()) return rows->status();
  return count;
}

// Clusters, and members of them that are not canonical.
absl::Status CountClusters(ReadView& view, json& answer) {
  const std::unique_ptr<RowIterator> rows =
      view.Scan({.table = std::string(kClusters), .columns = {std::string(kChoice)}});
  uint64_t clusters = 0;
  uint64_t duplicates = 0;
  while (rows->Next()) {
    const absl::StatusOr<Choice> choice = MessageIn<Choice>(rows->row().columns[0].value);
    if (!choice.ok()) return choice.status();
    ++clusters;
    duplicates += choice->members_size() - 1;
  }
  answer["clusters"] = clusters;
  answer["duplicates"] = duplicates;
  return rows->status();
}

uint64_t BytesOfFolder(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_file;  // gone meanwhile: compactions delete files
    const uint64_t size = at->is_regular_file(of_file) ? at->file_size(of_file) : 0;
    if (!of_file) bytes += size;
  }
  return bytes;
}

std::string_view PhaseName(IndexingProgress::Phase phase) {
  switch (phase) {
    case IndexingProgress::Phase::kLoading:
      return "loading";
    case IndexingProgress::Phase::kIndexing:
      return "indexing";
    case IndexingProgress::Phase::kReady:
      return "ready";
  }
  return "";
}

}  // namespace

Api::Api(Cluster* cluster, Worker* worker, const Serving* serving, ApiOptions options)
    : cluster_(cluster), worker_(worker), serving_(serving), options_(std::move(options)) {}

// Without ranks, if they can't be read, hits are in the order of their texts: better than none.
std::vector<double> Api::RanksOf(const std::vector<std::string>& urls) const {
  absl::StatusOr<Snapshot> now = cluster_->Now();
  if (!now.ok()) return {};
  std::vector<CellName> cells;
  for (const std::string& url : urls) cells.push_back(Cell(kPages, url, kRank));
  const auto values = now->Get(cells);
  if (!values.ok()) return {};
  std::vector<double> ranks;
  for (const std::optional<std::string>& value : *values) {
    ranks.push_back(value.has_value() ? std::strtod(value->c_str(), nullptr) / static_cast<double>(kRankUnit) : 0);
  }
  return ranks;
}

absl::StatusOr<json> Api::Search(std::string_view query, size_t offset, size_t limit) const {
  if (query.size() > kLongestQuery) {
    return absl::InvalidArgumentError("the query is longer than " + std::to_string(kLongestQuery) + " bytes");
  }
  if (limit > kMostHits || offset > kLargestOffset) {
    return absl::InvalidArgumentError("limit goes up to " + std::to_string(kMostHits) + ", offset up to " +
                                      std::to_string(kLargestOffset));
  }
  const Clock::time_point began = Clock::now();
  const SearchResults results =
      serving_->Search(query, offset, limit, [this](const std::vector<std::string>& urls) { return RanksOf(urls); });
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  json hits = json::array();
  for (const Hit& hit : results.hits) hits.push_back(HitJson(hit));
  return json{{"query", query},
              {"terms", results.terms},
              {"all_terms", results.all_terms},
              {"matches", results.matches},
              {"total", results.total},
              {"offset", offset},
              {"took_micros", took.count()},
              {"documents", serving_->documents()},
              {"hits", std::move(hits)}};
}

absl::StatusOr<json> Api::Count() const {
  absl::StatusOr<Snapshot> now = cluster_->Now();
  if (!now.ok()) return now.status();
  const struct {
    const char* name;
    std::string_view table;
    std::string_view column;
  } counted[] = {{"pages", kPages, kStat}, {"files", kFiles, kState}, {"links", kInlinks, kAnchors}};
  json answer = {
      {"documents", serving_->documents()}, {"terms", serving_->terms()}, {"postings", serving_->postings()}};
  for (const auto& [name, table, column] : counted) {
    const absl::StatusOr<uint64_t> count = RowsWith(*now, table, column);
    if (!count.ok()) return count.status();
    answer[name] = *count;
  }
  if (absl::Status s = CountClusters(*now, answer); !s.ok()) return s;
  if (!options_.data.empty()) answer["disk_bytes"] = BytesOfFolder(options_.data);
  return answer;
}

absl::StatusOr<json> Api::Stats() const {
  const std::scoped_lock lock(count_mutex_);
  const Clock::time_point began = Clock::now();
  if (counted_.empty() || began >= counted_until_) {
    const absl::StatusOr<json> answer = Count();
    if (!answer.ok()) return answer.status();
    counted_ = answer->dump();
    const Clock::time_point ended = Clock::now();
    counted_until_ = ended + kCountedFor + kRestAfterCounting * (ended - began);
  }
  return json::parse(counted_);
}

json Api::Status() const {
  const std::scoped_lock lock(mutex_);
  json answer = {
      {"instance", options_.instance},       {"folder", options_.folder}, {"documents", serving_->documents()},
      {"phase", PhaseName(progress_.phase)}, {"done", progress_.done},    {"expected", progress_.expected},
      {"per_second", progress_.per_second}};
  if (!samples_.empty()) answer["backlog"] = samples_.back().backlog.cells;
  return answer;
}

void Api::SetProgress(const IndexingProgress& progress) {
  const std::scoped_lock lock(mutex_);
  progress_ = progress;
}

}  // namespace webindex
