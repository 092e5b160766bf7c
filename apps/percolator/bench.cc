// SPDX-License-Identifier: Apache-2.0

// percolator bench: measures the speed of a cluster in a few seconds. It creates a table, and drops it at the end, also after
// SIGINT. All threads at once run:
//
//     write     transactions that set one cell
//     transfer  transactions that read two cells and write both: the bank of the paper
//     read      single cells, from one snapshot per thread
//     scan      up to a thousand rows from a random row on, each time in a new snapshot

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/text.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

using std::chrono::steady_clock;

constexpr char kColumn[] = "v";

struct BenchArguments {
  std::string time = "1s";
  int threads = 4;
  int rows = 10'000;
  size_t value_bytes = 100;
};

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");
void Interrupt(int /*signal*/) { interrupted = true; }

struct Setting {
  Cluster cluster;
  std::string table;
  Duration time{0};
  int threads = 0;
  int rows = 0;
  std::string value;
};

// Eight digits, so that rows sort like numbers.
std::string RowName(int i) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08d", i);
  return text.data();
}

// One operation, repeated by each thread. Returns its number of units, such as rows.
using Step = std::function<absl::StatusOr<int>(std::mt19937& random)>;

struct Measured {
  std::string operation;
  int64_t count = 0;
  Duration time{0};
  Duration p50{0};
  Duration p99{0};
};

Duration Percentile(std::vector<Duration>* sorted, double part) {
  if (sorted->empty()) return Duration(0);
  return (*sorted)[static_cast<size_t>(part * static_cast<double>(sorted->size() - 1))];
}

// Runs steps of `make(thread)` in all threads until the time is up, at least one in each.
absl::StatusOr<Measured> Measure(const Setting& setting, const std::string& operation,
                                 const std::function<Step(int thread)>& make) {
  std::mutex mutex;  // protects the next three
  std::vector<Duration> latencies;
  int64_t count = 0;
  absl::Status failed;
  const auto begun = steady_clock::now();
  const auto end = begun + setting.time;
  const auto work = [&](int thread) {
    const Step step = make(thread);
    std::mt19937 random(static_cast<uint32_t>(thread));
    std::vector<Duration> own;
    int64_t own_count = 0;
    absl::Status status;
    for (auto now = steady_clock::now(); status.ok() && (now < end || own.empty()) && !interrupted;) {
      const absl::StatusOr<int> done = step(random);
      const auto after = steady_clock::now();
      own.push_back(std::chrono::duration_cast<Duration>(after - now));
      now = after;
      status = done.status();
      own_count += done.ok() ? *done : 0;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    latencies.insert(latencies.end(), own.begin(), own.end());
    count += own_count;
    failed.Update(status);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < setting.threads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  PERCOLATOR_RETURN_IF_ERROR(failed);
  const auto time = std::chrono::duration_cast<Duration>(steady_clock::now() - begun);
  std::sort(latencies.begin(), latencies.end());
  return Measured{operation, count, time, Percentile(&latencies, 0.5), Percentile(&latencies, 0.99)};
}

int AnyRow(const Setting& setting, std::mt19937& random) {
  return std::uniform_int_distribution<int>(0, setting.rows - 1)(random);
}

// Writes the rows, some hundreds in a transaction.
absl::Status Fill(const Setting& setting) {
  constexpr int kBatch = 500;
  for (int first = 0; first < setting.rows && !interrupted; first += kBatch) {
    const auto fill = [&](ReadWrite& t) {
      for (int i = first; i < std::min(first + kBatch, setting.rows); ++i) {
        t.Set({setting.table, RowName(i), kColumn}, setting.value);
      }
      return absl::OkStatus();
    };
    PERCOLATOR_RETURN_IF_ERROR(Commit(setting.cluster, fill).status());
  }
  return absl::OkStatus();
}

Step Write(const Setting& setting) {
  return [&setting](std::mt19937& random) -> absl::StatusOr<int> {
    const std::string row = RowName(AnyRow(setting, random));
    const auto write = [&](ReadWrite& t) { t.Set({setting.table, row, kColumn}, setting.value); };
    PERCOLATOR_RETURN_IF_ERROR(setting.cluster.Transact(write));
    return 1;
  };
}

Step Transfer(const Setting& setting) {
  return [&setting](std::mt19937& random) -> absl::StatusOr<int> {
    const CellName from{setting.table, RowName(AnyRow(setting, random)), kColumn};
    const CellName to{setting.table, RowName(AnyRow(setting, random)), kColumn};
    const std::vector<CellView> cells{from, to};
    const auto swap = [&](ReadWrite& t) -> absl::Status {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.GetCells(cells));
      t.Set(from, values[1].value_or(""));
      t.Set(to, values[0].value_or(""));
      return absl::OkStatus();
    };
    PERCOLATOR_RETURN_IF_ERROR(setting.cluster.Transact(swap));
    return 1;
  };
}

Step Read(const Setting& setting) {
  return [&setting, snapshot = setting.cluster.GetSnapshot()](std::mt19937& random) -> absl::StatusOr<int> {
    PERCOLATOR_RETURN_IF_ERROR(snapshot.status());
    const std::string row = RowName(AnyRow(setting, random));
    PERCOLATOR_RETURN_IF_ERROR(snapshot->Get({setting.table, row, kColumn}).status());
    return 1;
  };
}

Step Scan(const Setting& setting) {
  return [&setting](std::mt19937& random) -> absl::StatusOr<int> {
    constexpr size_t kRows = 1000;
    PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot snapshot, setting.cluster.GetSnapshot());
    const RowRange rows{RowName(AnyRow(setting, random)), std::nullopt};
    int count = 0;
    for (const absl::StatusOr<ScannedRow>& row : snapshot.Scan(setting.table, {.rows = rows, .limit = kRows})) {
      PERCOLATOR_RETURN_IF_ERROR(row.status());
      ++count;
    }
    return count;
  };
}

absl::StatusOr<std::vector<Measured>> MeasureAll(const Setting& setting) {
  PERCOLATOR_RETURN_IF_ERROR(Fill(setting));
  const std::vector<std::pair<std::string, Step (*)(const Setting&)>> kinds = {
      {"write", Write}, {"transfer", Transfer}, {"read", Read}, {"scan", Scan}};
  std::vector<Measured> all;
  for (const auto& [operation, make] : kinds) {
    PERCOLATOR_ASSIGN_OR_RETURN(
        Measured measured, Measure(setting, operation, [&, step = make](int /*thread*/) { return step(setting); }));
    if (interrupted) return absl::CancelledError("interrupted; the table of the benchmark is dropped");
    all.push_back(std::move(measured));
  }
  return all;
}

void Print(const Shell& shell, const std::vector<Measured>& all) {
  const std::vector<std::string> units = {"transactions/s", "transactions/s", "reads/s", "rows/s"};
  Listing listing(std::cout, shell.json, {"operation", "per second", "", "p50", "p99"});
  for (size_t i = 0; i < all.size(); ++i) {
    const Measured& one = all[i];
    const auto per_second = static_cast<int64_t>(static_cast<double>(one.count) * 1e6 /
                                                 static_cast<double>(std::max<int64_t>(one.time.count(), 1)));
    listing.Add({one.operation, std::to_string(per_second), units[i], AgeText(one.p50), AgeText(one.p99)},
                {{"operation", one.operation},
                 {"per_second", per_second},
                 {"unit", units[i]},
                 {"p50_us", one.p50.count()},
                 {"p99_us", one.p99.count()}});
  }
  listing.End();
}

// The name is unused, because the oracle never hands out a timestamp twice.
absl::StatusOr<std::string> NewTableName(const Cluster& cluster) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster.GetSnapshot());
  return "percolator-bench-" + now.timestamp().ToString();
}

absl::StatusOr<Exit> Bench(const Shell& shell, const BenchArguments& arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Duration time, ParseDuration(arguments.time));
  ClusterOptions options = CommandOptions();
  options.oracle_window = ClusterOptions().oracle_window;  // as in programs that run for a long time
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, shell.Open(Missing::kIsMade, options));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string table, NewTableName(cluster));
  const Setting setting{.cluster = cluster,
                        .table = table,
                        .time = std::min<Duration>(time, std::chrono::hours(1)),
                        .threads = arguments.threads,
                        .rows = arguments.rows,
                        .value = std::string(arguments.value_bytes, 'v')};
  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  PERCOLATOR_RETURN_IF_ERROR(cluster.CreateTable(setting.table));
  const absl::StatusOr<std::vector<Measured>> all = MeasureAll(setting);
  if (absl::Status s = cluster.DropTable(setting.table); !s.ok()) {
    return Finish(cluster,
                  absl::Status(s.code(), "cannot drop the table " + setting.table + ": " + std::string(s.message())));
  }
  if (!all.ok()) return Finish(cluster, all.status());
  Print(shell, *all);
  return Finish(cluster, Exit::kDone);
}

}  // namespace

void AddBench(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* const command = app.add_subcommand("bench", "Measures the speed of the cluster in a few seconds");
  command->add_option("--time", arguments->time, "Duration of each of the four measurements")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Number of threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--rows", arguments->rows, "Number of rows in the table")
      ->capture_default_str()
      ->check(CLI::Range(2, 10'000'000));
  command->add_option("--value-bytes", arguments->value_bytes, "Size of a value in bytes")
      ->capture_default_str()
      ->check(CLI::Range(0, 65536));
  command->footer(R"(Examples:
  percolator bench
  percolator --cluster rocksdb:/tmp/scratch bench --threads 16 --time 5s
  percolator --cluster memory: bench                      without a disk

Measures writes of one cell, transfers between two cells, reads of one cell and scans. It creates the table
percolator-bench-NUMBER, and drops it at the end. A commit waits for the disk. Threads that commit at the same
time share the wait, so more threads commit more.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Bench(shell, *arguments); }); });
}

}  // namespace percolator::cli
