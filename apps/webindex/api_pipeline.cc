// SPDX-License-Identifier: Apache-2.0

// Api::Pipeline and Api::Sample: the observers at work.

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "apps/webindex/api.h"
#include "apps/webindex/tables.h"

namespace webindex {

using nlohmann::json;
using percolator::ClusterMetrics;
using percolator::Duration;
using percolator::ObserverMetrics;
using percolator::Quarantined;

namespace {

constexpr size_t kMaxSamples = 180;  // about three minutes
constexpr auto kRatePeriod = std::chrono::seconds(3);
constexpr size_t kMaxCounted = 20'000;  // cells of the backlog
constexpr size_t kMaxLatencies = 500;
constexpr size_t kMaxQuarantined = 50;

// The observers, as pipeline.h lists them, and their places in the drawing: `stage` counts from the left, `lane` from the top.
struct Described {
  const char* name;
  int stage;
  int lane;
  const char* observes;
  const char* does;
};
constexpr Described kObservers[] = {
    {"parse", 1, 1, "pages.contents", "extracts text, identity, links, resources and history from the file"},
    {"changed", 1, 6, "files.state", "notifies the pages that are rendered with the file"},
    {"cluster", 2, 0, "pages.identity", "finds the cluster of duplicates of the page and moves the page there"},
    {"invert", 2, 2, "pages.links", "updates the incoming links of other pages, and the words of their anchors"},
    {"rank", 2, 3, "pages.links", "records that the page now gives its rank to other pages"},
    {"subscribe", 2, 4, "pages.resources", "subscribes the page to the files it is rendered with"},
    {"moved", 2, 5, "pages.identity", "notifies the pages whose cluster depends on where this page has moved"},
    {"fold-anchor_words", 3, 2, "anchor_words", "sums the words of anchors (combine queue)"},
    {"publish", 3, 5, "subscribers.publish", "notifies subscribers in batches"},
    {"choose", 4, 0, "clusters.choose", "makes the member with the highest rank canonical"},
    {"anchored", 4, 2, "anchor_words.value", "indexes the canonical page again when words of links to it have changed"},
    {"spread", 4, 3, "rank_changes.spread",
     "updates the ranks of many pages, and what they give to the pages they link to"},
    {"summarize", 4, 4, "pages.summarize", "makes the summary from the page and its files"},
    {"recluster", 4, 5, "pages.recluster", "finds the cluster again when a page that the page has moved to changes"},
    {"reindex", 5, 1, "pages.reindex", "updates the postings of a canonical page, and exports the document"},
    {"reconsider", 5, 3, "pages.rank", "lets a cluster of several pages choose again"},
    {"number-exports", 6, 1, "exports", "numbers the exported documents (export queue)"},
    {"deliver-exports", 7, 1, "exports", "delivers exported documents to the serving side (export queue)"},
};

// Which observer triggers which, as the observers are written. "load" stands for the transactions that load files.
constexpr const char* kEdges[][2] = {
    {"load", "parse"},
    {"load", "changed"},
    {"parse", "moved"},
    {"parse", "cluster"},
    {"parse", "invert"},
    {"parse", "rank"},
    {"parse", "subscribe"},
    {"parse", "reindex"},
    {"parse", "summarize"},
    {"cluster", "choose"},
    {"cluster", "reindex"},
    {"cluster", "recluster"},
    {"recluster", "choose"},
    {"recluster", "reindex"},
    {"choose", "reindex"},
    {"moved", "publish"},
    {"changed", "publish"},
    {"publish", "recluster"},
    {"publish", "summarize"},
    {"invert", "fold-anchor_words"},
    {"fold-anchor_words", "anchored"},
    {"anchored", "reindex"},
    {"rank", "spread"},
    {"spread", "spread"},
    {"spread", "reconsider"},
    {"reconsider", "choose"},
    {"subscribe", "summarize"},
    {"reindex", "number-exports"},
    {"number-exports", "deliver-exports"},
};

using Edge = std::pair<std::string, std::string>;

// Returns the edges that the worker has seen, from its description:
//
//     parse observes pages:contents
//       changes pages:links, observed by invert rank
std::set<Edge> SeenEdges(const std::string& description) {
  constexpr std::string_view kObservedBy = ", observed by ";
  std::set<Edge> edges;
  std::istringstream lines(description);
  std::string observer;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(" ")) {
      observer = line.substr(0, line.find(' '));
      continue;
    }
    const size_t found = line.find(kObservedBy);
    if (found == std::string::npos) continue;
    std::istringstream names(line.substr(found + kObservedBy.size()));
    for (std::string name; names >> name;) edges.emplace(observer, name);
  }
  return edges;
}

json GraphJson(const std::string& description) {
  const std::set<Edge> seen = SeenEdges(description);
  std::set<Edge> all = seen;
  for (const auto& [from, to] : kEdges) all.emplace(from, to);
  json edges = json::array();
  for (const Edge& edge : all) {
    edges.push_back({{"from", edge.first}, {"to", edge.second}, {"seen", edge.first == "load" || seen.contains(edge)}});
  }
  return edges;
}

json ObserverJson(const ObserverMetrics& metrics, double per_second) {
  const auto* described = std::find_if(std::begin(kObservers), std::end(kObservers),
                                       [&](const Described& d) { return metrics.name == d.name; });
  const bool known = described != std::end(kObservers);
  return {{"name", metrics.name},
          {"stage", known ? described->stage : 0},
          {"lane", known ? described->lane : 0},
          {"observes", known ? described->observes : ""},
          {"does", known ? described->does : ""},
          {"runs", metrics.runs},
          {"commits", metrics.commits},
          {"conflicts", metrics.conflicts},
          {"failures", metrics.failures},
          {"transient_errors", metrics.transient_errors},
          {"quarantined", metrics.quarantined},
          {"pending", metrics.pending},
          {"oldest_micros", metrics.oldest.count()},
          {"p50_micros", metrics.latency_p50.count()},
          {"p99_micros", metrics.latency_p99.count()},
          {"per_second", per_second}};
}

json ClusterStatsJson(const ClusterMetrics& stats) {
  return {{"commits", stats.commits},
          {"conflicts", stats.conflicts},
          {"unknown_outcomes", stats.unknown_outcomes},
          {"store_reads", stats.store_reads},
          {"cells_prefetched", stats.cells_prefetched},
          {"prefetched_cells_used", stats.prefetched_cells_used},
          {"foreign_locks_found", stats.foreign_locks_found},
          {"rolled_forward", stats.rolled_forward},
          {"rolled_back", stats.rolled_back},
          {"versions_collected", stats.versions_collected}};
}

json QuarantineJson(const std::vector<Quarantined>& quarantine) {
  json entries = json::array();
  for (const Quarantined& entry : quarantine) {
    if (entries.size() == kMaxQuarantined) break;
    entries.push_back({{"observer", entry.observer},
                       {"table", entry.cell.table},
                       {"row", entry.cell.row},
                       {"column", entry.cell.column},
                       {"attempts", entry.attempts},
                       {"error", entry.error},
                       {"since", std::to_string(entry.since.value())}});
  }
  return {{"count", quarantine.size()}, {"entries", std::move(entries)}};
}

json LatenciesJson(const std::vector<Serving::Latency>& latencies) {
  json shown = json::array();
  const size_t first = latencies.size() > kMaxLatencies ? latencies.size() - kMaxLatencies : 0;
  for (size_t i = first; i < latencies.size(); ++i) {
    shown.push_back({latencies[i].at_micros, latencies[i].micros});
  }
  return shown;
}

double Seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Api::Sample() {
  Sampled sample;
  sample.when = Clock::now();
  sample.at_micros = NowMicros();
  int64_t quarantined = 0;
  if (worker_ != nullptr) {
    for (const ObserverMetrics& metrics : worker_->metrics()) {
      sample.commits[metrics.name] = metrics.commits;
      quarantined += metrics.quarantined;
    }
  }
  if (const auto backlog = cluster_.CountNotifications(kMaxCounted); backlog.ok()) sample.backlog = *backlog;
  sample.cluster = cluster_.metrics();
  // The first sample lists the entries of earlier processes. Later ones list again only if there may be entries.
  std::optional<std::vector<Quarantined>> entries;
  {
    const std::scoped_lock lock(mutex_);
    const bool look = samples_.empty() || quarantined > 0 || !quarantine_.empty();
    if (!look || worker_ == nullptr) entries = std::vector<Quarantined>();
  }
  if (!entries.has_value()) {
    if (auto listed = worker_->ListQuarantine(); listed.ok()) entries = *std::move(listed);
  }
  const std::scoped_lock lock(mutex_);
  if (entries.has_value()) quarantine_ = *std::move(entries);
  samples_.push_back(std::move(sample));
  if (samples_.size() > kMaxSamples) samples_.pop_front();
}

absl::StatusOr<json> Api::Pipeline() const {
  if (worker_ == nullptr) return absl::FailedPreconditionError("no worker runs in this process");
  std::deque<Sampled> samples;
  json answer;
  {
    const std::scoped_lock lock(mutex_);
    samples = samples_;
    answer["quarantine"] = QuarantineJson(quarantine_);
  }
  const Clock::time_point now = Clock::now();
  const auto before = std::find_if(samples.rbegin(), samples.rend(),
                                   [&](const Sampled& sample) { return now - sample.when >= kRatePeriod; });
  const Sampled* const base = before != samples.rend() ? &*before : samples.empty() ? nullptr : &samples.front();
  json observers = json::array();
  for (const ObserverMetrics& metrics : worker_->metrics()) {
    double per_second = 0;
    if (base != nullptr && base->commits.contains(metrics.name) && now > base->when) {
      per_second = static_cast<double>(metrics.commits - base->commits.at(metrics.name)) / Seconds(now - base->when);
    }
    observers.push_back(ObserverJson(metrics, per_second));
  }
  json history = json::array();
  for (size_t i = 1; i < samples.size(); ++i) {
    const double seconds = Seconds(samples[i].when - samples[i - 1].when);
    const auto rate = [&](uint64_t later, uint64_t earlier) {
      return seconds > 0 ? static_cast<double>(later - earlier) / seconds : 0;
    };
    history.push_back({{"at_micros", samples[i].at_micros},
                       {"backlog", samples[i].backlog.cells},
                       {"oldest_micros", samples[i].backlog.oldest.count()},
                       {"commits_per_second", rate(samples[i].cluster.commits, samples[i - 1].cluster.commits)},
                       {"conflicts_per_second", rate(samples[i].cluster.conflicts, samples[i - 1].cluster.conflicts)}});
  }
  const std::string description = worker_->DescribeGraph();
  answer["observers"] = std::move(observers);
  answer["edges"] = GraphJson(description);
  answer["description"] = description;
  answer["history"] = std::move(history);
  answer["latencies"] = LatenciesJson(serving_->Latencies());
  answer["cluster"] = ClusterStatsJson(cluster_.metrics());
  answer["backlog"] = {{"cells", samples.empty() ? 0 : samples.back().backlog.cells},
                       {"max_cells", kMaxCounted},
                       {"oldest_micros", samples.empty() ? 0 : samples.back().backlog.oldest.count()}};
  answer["now_micros"] = samples.empty() ? 0 : samples.back().at_micros;
  return answer;
}

}  // namespace webindex
