// SPDX-License-Identifier: Apache-2.0

// Latency and rate of a chain load -> A -> B of observers, beside the same chain on PostgreSQL.
//
// A transaction loads a document. Observer A derives something from it, and observer B something from that, each in a
// transaction of its own. The highest rate is measured by loading as fast as possible, with a limited number of documents in
// progress (--in-flight), until B has committed the last one. The latency is the time from the commit of the load to the
// commit of B, at 10, 50 and 90 percent of that rate. If both sides run, it is also measured at 90 percent of the lower rate,
// which is the same work for both. The sides take turns in one run, and rates are medians over rounds.
//
// PostgreSQL has triggers that fill queue tables and NOTIFY, and workers that LISTEN and take one change per transaction with
// FOR UPDATE SKIP LOCKED (benchmarks/postgres_pipeline.h). Without --sync, synchronous_commit is off: a crash of PostgreSQL's
// server may lose the last commits, while the operating system has Percolator's when they are acknowledged. With --sync
// both wait for the disk.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/pipeline.h"
#include "benchmarks/postgres_pipeline.h"
#include "benchmarks/require.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/status_macros.h"

namespace percolator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kTable[] = "documents";

std::string RowOf(uint64_t document) {
  char row[24];
  std::snprintf(row, sizeof(row), "%016llx", static_cast<unsigned long long>(document * 0x9E3779B97F4A7C15U));
  return std::string(row) + "/" + std::to_string(document);
}

uint64_t DocumentOf(const std::string& row) { return std::stoull(row.substr(row.find('/') + 1)); }

// Reads one column and writes a value derived from it into another.
ObserverFunction DeriveInto(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](ReadWrite& t, const Notification& n) -> absl::Status {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get({n.cell.table, n.cell.row, from}));
    if (value.has_value()) {
      t.Set({n.cell.table, n.cell.row, to}, Derive(*value));
    } else {
      t.Delete({n.cell.table, n.cell.row, to});
    }
    return absl::OkStatus();
  };
}

class PercolatorPipeline final : public Pipeline {
 public:
  PercolatorPipeline(const std::string& dir, bool sync, int threads, int scanners, ObservedFunction observed) {
    ClusterOptions options;
    options.store.durability = sync ? Durability::kSync : Durability::kNoSync;
    const absl::StatusOr<Cluster> cluster = Cluster::Open("rocksdb:" + dir, options);
    Require(cluster.status(), "opening the cluster");
    cluster_ = *cluster;
    Require(cluster_->CreateTable(kTable), "creating the table");
    WorkerOptions worker_options;
    worker_options.threads = threads;
    worker_options.scanners = scanners;
    worker_options.on_commit = [observed = std::move(observed)](std::string_view observer, const Notification& n,
                                                                Timestamp /*commit_ts*/) {
      if (observer == "b") observed(DocumentOf(n.cell.row));
    };
    worker_ = std::make_unique<Worker>(*cluster_, worker_options);
    worker_->Observe({.name = "a", .table = kTable, .column = "contents", .run = DeriveInto("contents", "a")});
    worker_->Observe({.name = "b", .table = kTable, .column = "a", .run = DeriveInto("a", "b")});
    Require(worker_->Start(), "starting the worker");
  }

  void Load(int /*loader*/, uint64_t document, const std::string& contents) override {
    const auto load = [&](ReadWrite& t) { t.Set({kTable, RowOf(document), "contents"}, contents); };
    Require(cluster_->Transact(load), "loading");
  }

 private:
  std::optional<Cluster> cluster_;
  std::unique_ptr<Worker> worker_;
};

struct Settings {
  int loaders = 2;
  size_t in_flight = 256;  // documents in progress while the highest rate is measured
  double seconds = 3;      // length of a measurement
};

struct Latency {
  double p50_ms = std::nan("");
  double p99_ms = std::nan("");
};

// One side: a pipeline, and the clock of every document.
class Side {
 public:
  Side(std::string name, Settings settings) : name_(std::move(name)), settings_(settings), times_(kMaxDocuments) {}

  ObservedFunction OnObserved() {
    return [this](uint64_t document) {
      int64_t none = 0;
      // A change may be observed again, for example after a restart. The first time counts.
      if (times_[document].observed.compare_exchange_strong(none, Now())) observed_.fetch_add(1);
    };
  }
  void Use(std::unique_ptr<Pipeline> pipeline) { pipeline_ = std::move(pipeline); }
  const std::string& name() const { return name_; }

  // Loads as fast as possible; returns the documents per second that passed the whole chain.
  double MeasureRate() {
    const uint64_t first = next_;
    const Clock::time_point start = Clock::now();
    const auto end = start + std::chrono::duration<double>(settings_.seconds);
    RunLoaders([&](int loader) {
      while (Clock::now() < end) {
        if (next_.load() - observed_.load() >= settings_.in_flight) {
          std::this_thread::sleep_for(std::chrono::microseconds(50));
          continue;
        }
        LoadOne(loader);
      }
    });
    WaitForAll();
    return static_cast<double>(next_ - first) / std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Loads documents evenly, at a given rate per second.
  Latency MeasureLatency(double rate) {
    const uint64_t first = next_;
    const auto count = static_cast<uint64_t>(rate * settings_.seconds);
    const Clock::time_point start = Clock::now();
    std::atomic<uint64_t> taken{0};
    RunLoaders([&](int loader) {
      for (uint64_t i = taken.fetch_add(1); i < count; i = taken.fetch_add(1)) {
        std::this_thread::sleep_until(start + std::chrono::duration<double>(static_cast<double>(i) / rate));
        LoadOne(loader);
      }
    });
    WaitForAll();
    std::vector<double> millis;
    for (uint64_t document = first; document < next_; ++document) {
      const int64_t nanos = times_[document].observed - times_[document].loaded;
      millis.push_back(static_cast<double>(std::max<int64_t>(nanos, 0)) / 1e6);
    }
    std::sort(millis.begin(), millis.end());
    if (millis.empty()) return {};
    return {millis[millis.size() / 2], millis[millis.size() * 99 / 100]};
  }

 private:
  static constexpr size_t kMaxDocuments = 8'000'000;
  struct Times {
    std::atomic<int64_t> loaded{0};
    std::atomic<int64_t> observed{0};
  };

  static int64_t Now() { return Clock::now().time_since_epoch().count(); }

  void LoadOne(int loader) {
    const uint64_t document = next_.fetch_add(1);
    if (document >= kMaxDocuments) {
      std::fprintf(stderr, "notify: cannot measure more than %zu documents; choose fewer --seconds\n", kMaxDocuments);
      std::exit(1);
    }
    pipeline_->Load(loader, document, contents_ + std::to_string(document));
    times_[document].loaded = Now();
  }

  void RunLoaders(const std::function<void(int)>& run) {
    std::vector<std::thread> threads;
    for (int i = 0; i < settings_.loaders; ++i) threads.emplace_back(run, i);
    for (std::thread& thread : threads) thread.join();
  }

  void WaitForAll() {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (observed_ < next_) {
      if (Clock::now() > end) {
        std::fprintf(stderr, "notify: %s: documents were lost in the chain\n", name_.c_str());
        std::exit(1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  const std::string name_;
  const Settings settings_;
  const std::string contents_ = std::string(100, 'x');
  std::vector<Times> times_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> observed_{0};
  std::unique_ptr<Pipeline> pipeline_;  // last: its threads use the rest
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? std::nan("") : values[values.size() / 2];
}

struct Findings {
  double rate = std::nan("");
  std::vector<std::pair<int, Latency>> latencies;  // by percent of the rate
};

Latency MeasureAndPrint(Side* side, const std::string& where, double rate) {
  const Latency latency = side->MeasureLatency(rate);
  std::printf("%-11s  %-10s  %8.0f documents/s  p50 %.3f ms  p99 %.3f ms\n", where.c_str(), side->name().c_str(), rate,
              latency.p50_ms, latency.p99_ms);
  std::fflush(stdout);
  return latency;
}

// The sides take turns.
std::vector<Findings> Measure(const std::vector<Side*>& sides, int rounds) {
  std::vector<std::vector<double>> rates(sides.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      rates[i].push_back(sides[i]->MeasureRate());
      std::printf("round %d  %-10s  %8.0f documents/s\n", round + 1, sides[i]->name().c_str(), rates[i].back());
      std::fflush(stdout);
    }
  }
  std::vector<Findings> findings(sides.size());
  for (size_t i = 0; i < sides.size(); ++i) findings[i].rate = Median(rates[i]);
  for (const int percent : {10, 50, 90}) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const std::string where = "at " + std::to_string(percent) + " %";
      findings[i].latencies.emplace_back(percent, MeasureAndPrint(sides[i], where, findings[i].rate * percent / 100));
    }
  }
  if (sides.size() == 2) {
    const double same = 0.9 * std::min(findings[0].rate, findings[1].rate);
    for (Side* side : sides) MeasureAndPrint(side, "same rate", same);
  }
  return findings;
}

int Main(int argc, char** argv) {
  CLI::App app("Latency and rate of a chain of two observers, beside the same chain on PostgreSQL");
  bool sync = false;
  int rounds = 3;
  int threads = 4;
  int scanners = 1;
  int postgres_workers = 2;
  Settings settings;
  bool without_postgres = false;
  app.add_flag("--sync", sync, "every commit waits for the disk");
  app.add_option("--rounds", rounds, "number of measurements of the rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "length of one measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--loaders", settings.loaders, "threads or connections that load")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--in-flight", settings.in_flight, "maximum number of documents in progress")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", threads, "threads of Percolator's worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--scanners", scanners, "scanners of Percolator's worker")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--postgres-workers", postgres_workers, "connections of each of PostgreSQL's two stages")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--without-postgres", without_postgres, "Percolator alone");
  CLI11_PARSE(app, argc, argv);

  std::string dir = (std::filesystem::temp_directory_path() / "percolator-notify-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) {
    std::perror("notify: mkdtemp");
    return 1;
  }
  std::vector<Findings> findings;
  {
    Side percolator("percolator", settings);
    percolator.Use(
        std::make_unique<PercolatorPipeline>(dir + "/percolator", sync, threads, scanners, percolator.OnObserved()));
    std::vector<Side*> sides{&percolator};
    Side postgres("postgres", settings);
    std::string why = "not wanted";
    if (!without_postgres) {
      auto pipeline =
          NewPostgresPipeline({.dir = dir, .sync = sync, .loaders = settings.loaders, .workers = postgres_workers},
                              postgres.OnObserved(), &why);
      if (pipeline != nullptr) {
        postgres.Use(std::move(pipeline));
        sides.push_back(&postgres);
      }
    }
    if (sides.size() == 1) std::printf("WITHOUT POSTGRES: %s\n", why.c_str());
    findings = Measure(sides, rounds);
  }
  std::filesystem::remove_all(dir);
  findings.resize(2);
  const auto at = [](const Findings& f, size_t i) {
    return i < f.latencies.size() ? f.latencies[i].second : Latency();
  };
  std::printf("notify p50_ms=%.3f p99_ms=%.3f rate=%.0f postgres_p50_ms=%.3f postgres_rate=%.0f\n",
              at(findings[0], 0).p50_ms, at(findings[0], 0).p99_ms, findings[0].rate, at(findings[1], 0).p50_ms,
              findings[1].rate);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
