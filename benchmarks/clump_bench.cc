// SPDX-License-Identifier: Apache-2.0

// Do scanners of one table clump, each behind another, and does teleporting prevent it?
//
// Several workers in one process process a table of dirty rows, with teleporting and without. Each worker has one thread,
// one scanner and a short queue. There are no hints, so scanners find all work. The observer takes two milliseconds. The
// benchmark prints the time, the number of different rows in progress on average and in the worst tenth of the time, the
// distance between the workers (as part of the table; evenly spread would be 1/workers), and the useless runs.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "benchmarks/require.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/mutex.h"

namespace percolator {
namespace {

constexpr char kTable[] = "t";
constexpr auto kTick = std::chrono::milliseconds(1);

// The rows in progress.
class Progress {
 public:
  void Begin(int row) {
    MutexLock lock(&mutex_);
    rows_.insert(row);
  }
  void End(int row) {
    MutexLock lock(&mutex_);
    rows_.erase(rows_.find(row));
  }
  std::vector<int> Rows() {
    MutexLock lock(&mutex_);
    return {rows_.begin(), rows_.end()};
  }

 private:
  Mutex mutex_;
  std::multiset<int> rows_ ABSL_GUARDED_BY(mutex_);
};

struct Result {
  double seconds = 0;
  double distinct = 0;      // rows in progress, on average
  size_t distinct_low = 0;  // in the worst tenth
  double gap = 0;           // between neighbours, as part of the table: the median
  int64_t runs = 0;
  int64_t commits = 0;
};

struct Settings {
  int workers = 8;
  int rows = 4000;
  int queue = 4;
  int micros = 2000;
};

Result RunOnce(const Settings& settings, bool teleport, bool claims) {
  ClusterOptions options;
  options.gc_period = Duration(0);
  const absl::StatusOr<Cluster> cluster = Cluster::Open("memory:", options);
  Require(cluster.ok(), "Open");
  Require(cluster->CreateTable(kTable).ok(), "CreateTable");

  Progress progress;
  const ObserverFunction slow = [&](ReadWrite& t, const std::string& key) {
    const int row = std::stoi(key);
    progress.Begin(row);
    std::this_thread::sleep_for(std::chrono::microseconds(settings.micros));
    progress.End(row);
    t.Set({kTable, key, "seen"}, "1");
  };
  WorkerOptions worker_options;
  worker_options.threads = 1;
  worker_options.max_queued_cells = static_cast<size_t>(settings.queue);
  worker_options.scan_period = std::chrono::milliseconds(100);
  worker_options.hints = false;
  worker_options.claims = claims;
  worker_options.teleport = teleport;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < settings.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(*cluster, worker_options));
    workers.back()->Observe({.name = "slow", .table = kTable, .column = "c", .run = slow});
    Require(workers.back()->Start().ok(), "Start");
    workers.back()->Pause();
  }
  for (int i = 0; i < settings.rows; i += 1000) {
    const absl::Status done = cluster->Transact([&](ReadWrite& t) {
      for (int row = i; row < std::min(i + 1000, settings.rows); ++row) {
        char key[16];
        std::snprintf(key, sizeof(key), "%08d", row);
        t.Set({kTable, key, "c"}, "v");
      }
    });
    Require(done.ok(), "Transact");
  }

  const auto start = std::chrono::steady_clock::now();
  for (const auto& worker : workers) worker->Resume();
  std::atomic<bool> ended{false};
  std::vector<size_t> distinct;
  std::vector<double> gaps;
  std::thread sampler([&] {
    while (!ended) {
      const std::vector<int> rows = progress.Rows();
      const std::set<int> different(rows.begin(), rows.end());
      distinct.push_back(different.size());
      for (auto it = different.begin(); it != different.end() && std::next(it) != different.end(); ++it) {
        gaps.push_back(static_cast<double>(*std::next(it) - *it) / settings.rows);
      }
      std::this_thread::sleep_for(kTick);
    }
  });
  Require(workers[0]->WaitUntilIdle(std::chrono::seconds(120)).ok(), "WaitUntilIdle");
  Result result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ended = true;
  sampler.join();
  for (const auto& worker : workers) {
    worker->Stop().IgnoreError();
    for (const ObserverMetrics& metrics : worker->metrics()) {
      result.runs += metrics.runs;
      result.commits += metrics.commits;
    }
  }
  std::sort(distinct.begin(), distinct.end());
  for (const size_t n : distinct) result.distinct += static_cast<double>(n) / static_cast<double>(distinct.size());
  result.distinct_low = distinct[distinct.size() / 10];
  std::sort(gaps.begin(), gaps.end());
  result.gap = gaps.empty() ? 0 : gaps[gaps.size() / 2];
  return result;
}

int Main(int argc, char** argv) {
  Settings settings;
  int rounds = 3;
  CLI::App app("Do workers clump that find their work by scanning?");
  app.add_option("--workers", settings.workers)->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--rows", settings.rows, "number of dirty rows")
      ->capture_default_str()
      ->check(CLI::Range(100, 1'000'000));
  app.add_option("--queue", settings.queue, "length of the queue of each worker")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--micros", settings.micros, "time that the observer takes")->capture_default_str();
  app.add_option("--rounds", rounds)->capture_default_str()->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);

  std::printf("%-24s %8s %10s %12s %10s %8s %8s\n", "", "seconds", "in work", "worst tenth", "apart", "runs",
              "commits");
  for (int round = 0; round < rounds; ++round) {
    for (const auto& [name, teleport, claims] :
         {std::tuple("teleport", true, true), std::tuple("no teleport", false, true),
          std::tuple("no claims", false, false)}) {
      const Result result = RunOnce(settings, teleport, claims);
      std::printf("%-24s %8.2f %10.2f %12zu %9.2f%% %8lld %8lld\n", name, result.seconds, result.distinct,
                  result.distinct_low, 100 * result.gap, static_cast<long long>(result.runs),
                  static_cast<long long>(result.commits));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
