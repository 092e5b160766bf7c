// SPDX-License-Identifier: Apache-2.0

// One counter that many threads increment with Transact: rate, tail latency and fairness.
//
// Each thread reads the counter and writes it back, incremented, as fast as it can. No fsync. Printed: increments per second,
// the latency of a Transact (p50, p99, max), the CPU time of an increment, attempts per increment, and how the increments
// were spread over the threads: the unluckiest thread's share, as part of the average, and the luckiest one's. Then what an
// abort costs that comes n versions too late: the CPU time of a commit whose cell has n newer versions.
//
// The last line has the figures for programs. The run fails if the counter is not the number of increments.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/status_macros.h"

namespace percolator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Column<int64_t> kCount("counters", "count");

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + t.tv_usec / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Result {
  double per_s = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  double cpu_us = 0;      // of an increment
  double attempts = 0;    // per increment
  double unluckiest = 0;  // increments of a thread, as part of the average
  double luckiest = 0;
};

absl::StatusOr<Result> Increment(const Cluster& cluster, const std::string& row, int threads, double seconds) {
  struct alignas(64) PerThread {
    std::vector<double> ms;
    int64_t attempts = 0;
    absl::Status status;
  };
  std::vector<PerThread> each(threads);
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  for (PerThread& mine : each) {
    running.emplace_back([&] {
      while (!go) std::this_thread::yield();
      while (!stop && mine.status.ok()) {
        const auto begin = Clock::now();
        mine.status = cluster.Transact([&](ReadWrite& t) -> absl::Status {
          ++mine.attempts;
          PERCOLATOR_ASSIGN_OR_RETURN(const int64_t count, t.Get(kCount, row, int64_t{0}));
          t.Set(kCount, row, count + 1);
          return absl::OkStatus();
        });
        mine.ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      }
    });
  }
  const double cpu = CpuSeconds();
  const auto begin = Clock::now();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : running) thread.join();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  const double cpu_taken = CpuSeconds() - cpu;

  Result result;
  std::vector<double> ms;
  int64_t attempts = 0;
  size_t fewest = SIZE_MAX;
  size_t largest = 0;
  for (const PerThread& one : each) {
    PERCOLATOR_RETURN_IF_ERROR(one.status);
    ms.insert(ms.end(), one.ms.begin(), one.ms.end());
    attempts += one.attempts;
    fewest = std::min(fewest, one.ms.size());
    largest = std::max(largest, one.ms.size());
  }
  const auto count = static_cast<double>(ms.size());
  std::sort(ms.begin(), ms.end());
  result.per_s = count / took;
  result.p50_ms = ms[ms.size() / 2];
  result.p99_ms = ms[ms.size() * 99 / 100];
  result.max_ms = ms.back();
  result.cpu_us = cpu_taken * 1e6 / count;
  result.attempts = static_cast<double>(attempts) / count;
  result.unluckiest = static_cast<double>(fewest) * threads / count;
  result.luckiest = static_cast<double>(largest) * threads / count;

  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot snapshot, cluster.GetSnapshot());
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t counted, snapshot.Get(kCount, row, int64_t{0}));
  if (counted != static_cast<int64_t>(ms.size())) return absl::InternalError("the counter is wrong");
  return result;
}

absl::StatusOr<Result> RunOnce(const std::string& address, bool one_step, int threads, double seconds) {
  static int row = 0;
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;
  options.one_step_commit = one_step;
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address, options));
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("counters"));
  PERCOLATOR_ASSIGN_OR_RETURN(const Result result, Increment(cluster, "row" + std::to_string(++row), threads, seconds));
  std::printf(
      "  %-9s %4d threads %9.0f /s   p50 %7.3f  p99 %8.2f  max %8.1f ms   %6.1f us CPU  %5.2f attempts   %.2f to "
      "%.2f\n",
      one_step ? "one step" : "two phase", threads, result.per_s, result.p50_ms, result.p99_ms, result.max_ms,
      result.cpu_us, result.attempts, result.unluckiest, result.luckiest);
  std::fflush(stdout);
  PERCOLATOR_RETURN_IF_ERROR(cluster.Close());
  return result;
}

// Returns the median CPU time, in microseconds, of a commit that finds `newer` newer versions of its cell.
absl::StatusOr<double> AbortBehind(const std::string& address, int newer) {
  ClusterOptions options;
  options.store.durability = Durability::kNoSync;
  options.gc_period = Duration(0);
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address, options));
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("counters"));
  const std::string row = "behind" + std::to_string(newer);
  std::deque<Transaction> late;
  for (int i = 0; i < 15; ++i) {
    Transaction& t = late.emplace_back(cluster);
    PERCOLATOR_RETURN_IF_ERROR(t.Get(kCount, row).status());
    t.Set(kCount, row, i);
  }
  for (int i = 0; i < newer; ++i) {
    PERCOLATOR_RETURN_IF_ERROR(cluster.Transact([&](ReadWrite& t) { t.Set(kCount, row, i); }));
  }
  std::vector<double> us;
  for (Transaction& t : late) {
    timespec begin{};
    timespec end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    const CommitResult result = t.Commit();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    if (result.outcome != CommitResult::Outcome::kAborted) return absl::InternalError("a late commit was not aborted");
    us.push_back(static_cast<double>(end.tv_sec - begin.tv_sec) * 1e6 +
                 static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e3);
  }
  std::sort(us.begin(), us.end());
  std::printf("  a commit that is %d versions behind: %.1f us CPU\n", newer, us[us.size() / 2]);
  std::fflush(stdout);
  late.clear();
  PERCOLATOR_RETURN_IF_ERROR(cluster.Close());
  return us[us.size() / 2];
}

absl::Status Run(const std::string& address, double seconds) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Result one_16, RunOnce(address, true, 16, seconds));
  PERCOLATOR_ASSIGN_OR_RETURN(const Result one_64, RunOnce(address, true, 64, seconds));
  PERCOLATOR_ASSIGN_OR_RETURN(const Result one_512, RunOnce(address, true, 512, 2 * seconds));
  PERCOLATOR_ASSIGN_OR_RETURN(const Result two_16, RunOnce(address, false, 16, seconds));
  PERCOLATOR_ASSIGN_OR_RETURN(const double few, AbortBehind(address, 100));
  PERCOLATOR_ASSIGN_OR_RETURN(const double many, AbortBehind(address, 100'000));
  std::printf(
      "hotcell per_s_16=%.0f per_s_64=%.0f per_s_512=%.0f worst_ms_512=%.0f fair_512=%.2f fair_16=%.2f "
      "per_s_2pc_16=%.0f "
      "fair_2pc_16=%.2f behind_us_100=%.1f behind_us_100000=%.1f\n",
      one_16.per_s, one_64.per_s, one_512.per_s, one_512.max_ms, one_512.unluckiest, one_16.unluckiest, two_16.per_s,
      two_16.unluckiest, few, many);
  return absl::OkStatus();
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  CLI::App app("One counter that many threads increment.");
  std::string address;
  double seconds = 3;
  app.add_option("--cluster", address, "Address; by default a folder that is removed afterwards");
  app.add_option("--seconds", seconds, "How long each round takes")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  CLI11_PARSE(app, argc, argv);
  std::optional<std::filesystem::path> folder;
  if (address.empty()) {
    std::string name = (std::filesystem::temp_directory_path() / "hotcell.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      std::perror("hotcell: cannot make a temporary folder");
      return 1;
    }
    folder = name;
    address = "rocksdb:" + name + "/store";
  }
  const absl::Status status = percolator::Run(address, seconds);
  if (folder.has_value()) std::filesystem::remove_all(*folder);
  if (!status.ok()) std::fprintf(stderr, "hotcell: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
