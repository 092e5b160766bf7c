// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/api.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/tables.h"
#include "percolator/status_macros.h"

namespace webindex {

using nlohmann::json;
using percolator::Cluster;
using percolator::ReadView;
using percolator::ScannedRow;
using percolator::Snapshot;
using percolator::Worker;

namespace {

// Counting takes at most a tenth of the time.
constexpr int kRestAfterCounting = 9;
constexpr auto kCountedFor = std::chrono::seconds(1);

json HitJson(const Hit& hit) {
  json snippet = json::array();
  for (const Hit::Piece& piece : hit.snippet) snippet.push_back({{"text", piece.text}, {"marked", piece.marked}});
  return {{"url", hit.url},     {"title", hit.title},           {"snippet", std::move(snippet)},
          {"score", hit.score}, {"duplicates", hit.duplicates}, {"similar", hit.similar},
          {"rank", hit.rank}};
}

template <typename T>
absl::StatusOr<uint64_t> CountRows(const ReadView& view, const Column<T>& column) {
  uint64_t count = 0;
  for (const absl::StatusOr<ScannedRow>& row :
       view.Scan(column.table(), {.columns = {std::string(column.name())}, .keys_only = true})) {
    PERCOLATOR_RETURN_IF_ERROR(row.status());
    ++count;
  }
  return count;
}

// Clusters, and members of them that are not canonical.
absl::Status CountClusters(const ReadView& view, json& answer) {
  uint64_t clusters = 0;
  uint64_t duplicates = 0;
  for (const auto& choice : view.Scan(kChoice)) {
    PERCOLATOR_RETURN_IF_ERROR(choice.status());
    ++clusters;
    duplicates += choice->value.members_size() - 1;
  }
  answer["clusters"] = clusters;
  answer["duplicates"] = duplicates;
  return absl::OkStatus();
}

uint64_t BytesOfFolder(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_file;  // set if a compaction has deleted the file
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

Api::Api(const Cluster& cluster, Worker* worker, const Serving* serving, ApiOptions options)
    : cluster_(cluster), worker_(worker), serving_(serving), options_(std::move(options)) {}

// If ranks cannot be read, the hits are ordered by their text alone.
std::vector<double> Api::RanksOf(const std::vector<std::string>& urls) const {
  const absl::StatusOr<Snapshot> now = cluster_.GetSnapshot();
  if (!now.ok()) return {};
  const auto stored = now->GetRows(kRank, urls);
  if (!stored.ok()) return {};
  std::vector<double> ranks;
  for (const std::optional<int64_t>& rank : *stored) {
    ranks.push_back(static_cast<double>(rank.value_or(0)) / static_cast<double>(kRankUnit));
  }
  return ranks;
}

absl::StatusOr<json> Api::Search(std::string_view query, size_t offset, size_t limit) const {
  if (query.size() > kMaxQueryBytes) {
    return absl::InvalidArgumentError("the query is longer than " + std::to_string(kMaxQueryBytes) + " bytes");
  }
  if (limit > kMaxHits || offset > kMaxOffset) {
    return absl::InvalidArgumentError("the maximum of limit is " + std::to_string(kMaxHits) + ", that of offset " +
                                      std::to_string(kMaxOffset));
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
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster_.GetSnapshot());
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t pages, CountRows(now, kStat));
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t files, CountRows(now, kState));
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t links, CountRows(now, kAnchors));
  json answer = {{"documents", serving_->documents()},
                 {"terms", serving_->terms()},
                 {"postings", serving_->postings()},
                 {"pages", pages},
                 {"files", files},
                 {"links", links}};
  PERCOLATOR_RETURN_IF_ERROR(CountClusters(now, answer));
  if (!options_.data.empty()) answer["disk_bytes"] = BytesOfFolder(options_.data);
  return answer;
}

absl::StatusOr<json> Api::Stats() const {
  const std::scoped_lock lock(count_mutex_);
  const Clock::time_point began = Clock::now();
  if (counted_.empty() || began >= counted_until_) {
    PERCOLATOR_ASSIGN_OR_RETURN(const json answer, Count());
    counted_ = answer.dump();
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
