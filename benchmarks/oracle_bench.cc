// SPDX-License-Identifier: Apache-2.0

// Timestamps per second and the latency of one, directly and through the front that shares requests.
//
//   near      LocalOracle in this process, called directly            against   through BatchingOracle
//   distant   the same behind a simulated round trip, every caller    against   through BatchingOracle
//             with a request of its own
//
// With --remote: a server in a process of its own, and clients in others (oracle_remote.h).
//
// Every thread checks that its timestamps grow. A simulated round trip costs no processor time, so a separate request looks
// cheaper than it is. Latencies are those of every 64th call near by and of every call at a distance, of all rounds, and
// contain one reading of the clock.

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/duel.h"
#include "benchmarks/oracle_remote.h"
#include "benchmarks/require.h"
#include "src/oracle/batching_oracle.h"
#include "src/oracle/local_oracle.h"

namespace percolator {
namespace {

using std::chrono::steady_clock;

constexpr int kMaxThreads = 64;

struct Settings {
  int rounds = 9;
  int round_ms = 100;
  int round_trip_us = 200;
};

class DistantOracle final : public Oracle {
 public:
  DistantOracle(Oracle* oracle, std::chrono::microseconds round_trip) : oracle_(oracle), round_trip_(round_trip) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    std::this_thread::sleep_for(round_trip_);
    return oracle_->GetTimestamps(count);
  }

 private:
  Oracle* const oracle_;
  const std::chrono::microseconds round_trip_;
};

// Counts requests and timestamps.
class CountedOracle final : public Oracle {
 public:
  explicit CountedOracle(Oracle* oracle) : oracle_(oracle) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    ++requests_;
    timestamps_ += count;
    return oracle_->GetTimestamps(count);
  }

  double RequestsPerTimestamp() const { return static_cast<double>(requests_) / static_cast<double>(timestamps_); }

 private:
  Oracle* const oracle_;
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> timestamps_{0};
};

struct Latencies {
  double p50_us = 0;
  double p99_us = 0;
};

// Draws timestamps from an oracle, and measures one call in `every`.
class Caller {
 public:
  Caller(Oracle* oracle, int every) : oracle_(oracle), every_(every) {}

  void Draw(int thread) {
    OfThread& mine = of_threads_[thread];
    const bool measured = ++mine.calls % every_ == 0;
    const steady_clock::time_point start = measured ? steady_clock::now() : steady_clock::time_point();
    const absl::StatusOr<Timestamp> drawn = oracle_->GetTimestamp();
    if (measured) mine.latencies.push_back(steady_clock::now() - start);
    Require(drawn.ok(), "drawing a timestamp");
    Require(*drawn > mine.last, "drawing a timestamp greater than the one before");
    mine.last = *drawn;
  }

  Latencies Measured() const {
    std::vector<steady_clock::duration> all;
    for (const OfThread& one : of_threads_) all.insert(all.end(), one.latencies.begin(), one.latencies.end());
    Require(!all.empty(), "measuring a call");
    return {Quantile(&all, 0.5), Quantile(&all, 0.99)};
  }

 private:
  // On cache lines of its own, so that threads do not slow each other down by counting.
  struct alignas(128) OfThread {
    int64_t calls = 0;
    Timestamp last;
    std::vector<steady_clock::duration> latencies;
  };

  static double Quantile(std::vector<steady_clock::duration>* values, double q) {
    const auto nth = values->begin() + static_cast<int64_t>(q * static_cast<double>(values->size() - 1));
    std::nth_element(values->begin(), nth, values->end());
    return std::chrono::duration<double, std::micro>(*nth).count();
  }

  Oracle* const oracle_;
  const int every_;
  std::array<OfThread, kMaxThreads> of_threads_;
};

struct Result {
  double per_s = 0;
  Latencies latencies;
};

// Directly, and through a BatchingOracle.
std::pair<Result, Result> Compare(const std::string& title, Oracle* oracle, int every, int threads,
                                  const Settings& settings) {
  CountedOracle counted(oracle);
  BatchingOracle front(&counted);
  Caller direct(oracle, every);
  Caller batched(&front, every);
  Duel duel(title, threads, settings.rounds, std::chrono::milliseconds(settings.round_ms));
  duel.Add("directly", [&](int t) { direct.Draw(t); });
  duel.Add("through BatchingOracle", [&](int t) { batched.Draw(t); });
  duel.Run();
  const Result of_direct{duel.rate(0), direct.Measured()};
  const Result of_batched{duel.rate(1), batched.Measured()};
  for (const auto& [name, result] :
       {std::pair("directly", of_direct), std::pair("through BatchingOracle", of_batched)}) {
    std::printf("  %-32s p50 %9.2f us   p99 %9.2f us\n", name, result.latencies.p50_us, result.latencies.p99_us);
  }
  std::printf("  %-32s %.3f requests per timestamp\n", "through BatchingOracle", counted.RequestsPerTimestamp());
  std::fflush(stdout);
  return {of_direct, of_batched};
}

double ClockMicros() {
  constexpr int kReadings = 100'000;
  const steady_clock::time_point start = steady_clock::now();
  for (int i = 2; i < kReadings; ++i) Require(steady_clock::now() >= start, "reading a clock that does not go back");
  return std::chrono::duration<double, std::micro>(steady_clock::now() - start).count() / kReadings;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Timestamps per second and latency of one, directly and through the front that shares requests.");
  app.add_option("--rounds", settings.rounds, "Rounds; the median counts")->capture_default_str();
  app.add_option("--round-ms", settings.round_ms, "Length of a contestant's turn")->capture_default_str();
  app.add_option("--round-trip-us", settings.round_trip_us, "Time to the distant oracle and back")
      ->capture_default_str();
  bool remote = false;
  RemoteRole role;
  app.add_flag("--remote", remote,
               "Measure the oracle of a server instead, with clients in other processes (3 rounds of a second)");
  AddRemoteRole(&app, &role);
  CLI11_PARSE(app, argc, argv);
  if (!role.role.empty()) return PlayRemoteRole(role);
  if (remote) return RunRemote(std::filesystem::read_symlink("/proc/self/exe").string(), 3, 1000);

  // Otherwise the kernel lengthens every sleep by some 50 us, to wake several threads at once. Threads inherit the setting.
  Require(prctl(PR_SET_TIMERSLACK, 1) == 0, "setting the timer slack");
  std::string dir = (std::filesystem::temp_directory_path() / "percolator-bench-XXXXXX").string();
  Require(mkdtemp(dir.data()) != nullptr, "making a temporary folder");
  Result local, batched_64, distant_64;
  {
    const absl::StatusOr<std::unique_ptr<LocalOracle>> oracle = LocalOracle::Create(dir + "/oracle", Timestamp());
    Require(oracle.ok(), "creating the oracle");
    DistantOracle distant(oracle->get(), std::chrono::microseconds(settings.round_trip_us));
    std::printf("reading the clock: %.3f us\n", ClockMicros());
    for (const int threads : {1, 2, 8, kMaxThreads}) {
      const auto [direct, batched] = Compare("near", oracle->get(), 64, threads, settings);
      if (threads == 1) local = direct;
      if (threads == kMaxThreads) batched_64 = batched;
    }
    for (const int threads : {1, 2, 8, kMaxThreads}) {
      const auto [direct, batched] = Compare("distant", &distant, 1, threads, settings);
      if (threads == kMaxThreads) distant_64 = batched;
    }
  }
  std::filesystem::remove_all(dir);
  std::printf(
      "oracle local_per_s=%.0f local_p50_us=%.3f local_p99_us=%.3f batched_64_per_s=%.0f batched_64_p50_us=%.1f "
      "distant_64_per_s=%.0f distant_64_p50_us=%.1f\n",
      local.per_s, local.latencies.p50_us, local.latencies.p99_us, batched_64.per_s, batched_64.latencies.p50_us,
      distant_64.per_s, distant_64.latencies.p50_us);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
