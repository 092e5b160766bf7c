// What people and programs ask of the web index, answered as JSON: by the server under /api/, and by the command line.
//
//     Search    the hits of a query
//     Page      everything that is known of a page, now or at an earlier moment
//     Pipeline  the observers at work: the graph, rates, what waits, how long a change takes until it is searchable
//     Stats     how much there is
//     Status    in a few bytes: is it ready, how far is it
//
// Times are in microseconds; moments since 1970, durations as such. Strings are UTF-8.

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

inline constexpr size_t kLongestQuery = 1000;  // bytes
inline constexpr size_t kMaxHits = 100;        // at once
inline constexpr size_t kLargestOffset = 1'000'000;
inline constexpr size_t kShownLinks = 100;
inline constexpr size_t kShownText = 64 << 10;  // bytes

struct ApiOptions {
  std::string folder;    // that is indexed
  std::string base;      // see url.h
  std::string data;      // the folder of the cluster; empty: not in one
  std::string instance;  // names this process in Status
};

// The first indexing, as the page shows it.
struct IndexingProgress {
  enum class Phase : uint8_t { kLoading, kIndexing, kReady };
  Phase phase = Phase::kReady;
  uint64_t done = 0;      // files loaded
  uint64_t expected = 0;  // of so many; zero: not known yet
  double per_second = 0;
};

// Thread-safe.
class Api {
 public:
  // `worker` and `serving` must outlive it. Without a worker there is no Pipeline.
  Api(const percolator::Cluster& cluster, percolator::Worker* worker, const Serving* serving, ApiOptions options);

  // Returns InvalidArgument if the query is too long or the limits are out of bounds.
  absl::StatusOr<nlohmann::json> Search(std::string_view query, size_t offset, size_t limit) const;

  // Returns NotFound if there is no such page, and never was one that is remembered. With `at`, a timestamp of its
  // history, also returns the text as it was then, or OutOfRange if that is no longer kept.
  absl::StatusOr<nlohmann::json> Page(const std::string& url, std::optional<uint64_t> at = std::nullopt) const;

  // Returns FailedPrecondition if no worker runs here.
  absl::StatusOr<nlohmann::json> Pipeline() const;

  // Counts; the answer may be a few seconds old, longer if counting takes long.
  absl::StatusOr<nlohmann::json> Stats() const;

  nlohmann::json Status() const;

  // To be called about once a second: what rates and curves are made of.
  void Sample();

  void SetProgress(const IndexingProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  // Of one moment.
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

  mutable std::mutex count_mutex_;  // held while counting: others wait for the result
  // State below is protected by count_mutex_.
  mutable std::string counted_;  // JSON
  mutable Clock::time_point counted_until_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_API_H_
