// SPDX-License-Identifier: Apache-2.0

// The questions that the server (under /api/) and the command line answer, as JSON:
//
//     Search    the hits of a query
//     Page      everything that the index knows about a page, now or at an earlier time
//     Pipeline  the observers at work: graph, rates, backlog, and how long a change takes until it is searchable
//     Stats     counts of pages, links and terms
//     Status    in a few bytes: the phase and progress of indexing
//
// Times are in microseconds: points in time since 1970, and durations. Strings are UTF-8.

#ifndef PERCOLATOR_APPS_WEBINDEX_API_H_
#define PERCOLATOR_APPS_WEBINDEX_API_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/webindex/serving.h"
#include "percolator/cluster.h"
#include "percolator/loader.h"
#include "percolator/observer.h"

namespace webindex {

inline constexpr size_t kMaxQueryBytes = 1000;
inline constexpr size_t kMaxHits = 100;  // of one answer
inline constexpr size_t kMaxOffset = 1'000'000;
inline constexpr size_t kMaxLinksShown = 100;
inline constexpr size_t kMaxTextBytesShown = 64 << 10;

struct ApiOptions {
  std::string folder;    // the indexed folder
  std::string base;      // see url.h
  std::string data;      // the folder of the cluster; empty if it has none
  std::string instance;  // names this process in Status
};

// The progress of the first indexing.
struct IndexingProgress {
  enum class Phase : uint8_t { kLoading, kIndexing, kReady };
  Phase phase = Phase::kReady;
  uint64_t done = 0;      // files loaded
  uint64_t expected = 0;  // files to load; zero if unknown
  double per_second = 0;
};

// Thread-safe.
class Api {
 public:
  // `worker` and `serving` must outlive it. Without a worker there is no Pipeline.
  Api(const percolator::Cluster& cluster, percolator::Worker* worker, const Serving* serving, ApiOptions options);

  // Returns InvalidArgument if the query is too long or the limits are out of bounds.
  absl::StatusOr<nlohmann::json> Search(std::string_view query, size_t offset, size_t limit) const;

  // Returns NotFound if there is no such page, no link to it and no history of it. With `at`, a timestamp of its history, also
  // returns the text at that time, or OutOfRange if that version is no longer kept.
  absl::StatusOr<nlohmann::json> Page(const std::string& url, std::optional<uint64_t> at = std::nullopt) const;

  // Returns FailedPrecondition if no worker runs in this process.
  absl::StatusOr<nlohmann::json> Pipeline() const;

  // The answer may be a few seconds old, or older if counting takes long.
  absl::StatusOr<nlohmann::json> Stats() const;

  nlohmann::json Status() const;

  // Takes a sample for rates and charts. Call it about once a second.
  void Sample();

  void SetProgress(const IndexingProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  struct Sampled {
    Clock::time_point when;
    int64_t at_micros = 0;
    std::map<std::string, int64_t> commits;  // by observer
    percolator::Backlog backlog;
    percolator::ClusterMetrics cluster;
  };

  std::vector<double> RanksOf(const std::vector<std::string>& urls) const;
  absl::StatusOr<nlohmann::json> Count() const;
  absl::Status AddVersion(const std::string& url, uint64_t at, nlohmann::json& answer) const;

  const percolator::Cluster cluster_;
  percolator::Worker* const worker_;
  const Serving* const serving_;
  const ApiOptions options_;

  mutable std::mutex mutex_;
  // State below is protected by mutex_.
  std::deque<Sampled> samples_;
  std::vector<percolator::Quarantined> quarantine_;
  IndexingProgress progress_;

  mutable std::mutex count_mutex_;  // held while counting; other callers wait for the result
  // State below is protected by count_mutex_.
  mutable std::string counted_;  // JSON
  mutable Clock::time_point counted_until_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_API_H_
