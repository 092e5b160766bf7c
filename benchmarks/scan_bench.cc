// SPDX-License-Identifier: Apache-2.0

// The cost of a scanner's pass over all notifications. It should grow with the dirty cells, not with the table.
//
// The tables differ in size. They are filled directly in the store, each cell in a row of its own. Some cells are marked, and
// a pass reads all marks with ScanMarks, in pages, as a worker's scanner does. Then a million notifications come and go: marks
// are set, and removed a little later. The passes are repeated at once, among the tombstones, and again a few seconds later.

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/require.h"
#include "percolator/spi/store.h"
#include "src/observe/run.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

constexpr char kTable[] = "t";
constexpr char kColumn[] = "c";
constexpr size_t kBatch = 2000;
constexpr size_t kPage = 100;  // rows
constexpr int kPasses = 21;

std::string RowKey(uint64_t i) {
  char key[32];
  std::snprintf(key, sizeof(key), "row%010llu", static_cast<unsigned long long>(i));
  return key;
}

// The time that counts when other programs use the same cores.
double ThreadCpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

struct Passes {
  size_t marks = 0;
  double fastest_ms = 0;
  double cpu_ms = 0;  // median CPU time of the thread that reads
};

class Bench {
 public:
  Bench(const std::string& dir, uint64_t cells) : cells_(cells) {
    RocksOptions options;
    options.durability = Durability::kNoSync;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir, options);
    Require(store.ok(), "opening the store");
    store_ = *std::move(store);
    env_.store = store_;
    Require(store_->CreateTable({kTable, ""}).ok(), "CreateTable");
    Fill();
  }

  // Marks a number of cells, evenly spread.
  void MarkCells(uint64_t dirty) {
    ForEach(dirty, [&](uint64_t i) { return Marked(i * (cells_ / dirty)); });
  }
  void Unmark(uint64_t dirty) {
    ForEach(dirty, [&](uint64_t i) { return Unmarked(i * (cells_ / dirty)); });
  }

  // Sets marks, and removes each when the next few thousand are set. They are not on the cells of MarkCells.
  void Process(uint64_t notifications, uint64_t dirty) {
    const uint64_t stride = cells_ / dirty;
    // With a prime step, consecutive cells are far apart in the table.
    const auto cell = [&](uint64_t i) {
      const uint64_t at = i * 7919 % cells_;
      return at % stride == 0 ? at + 1 : at;
    };
    for (uint64_t i = 0; i < notifications; i += kBatch) {
      std::vector<RowMutation> batch;
      for (uint64_t j = i; j < i + kBatch; ++j) batch.push_back(Marked(cell(j)));
      Apply(std::move(batch));
      std::vector<RowMutation> gone;
      for (uint64_t j = i; j < i + kBatch; ++j) gone.push_back(Unmarked(cell(j)));
      Apply(std::move(gone));
    }
  }

  Passes Measure() {
    std::vector<double> times;
    std::vector<double> cpu_times;
    Passes passes;
    for (int i = 0; i < kPasses; ++i) {
      const double cpu = ThreadCpuMs();
      const auto start = std::chrono::steady_clock::now();
      passes.marks = Pass();
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      cpu_times.push_back(ThreadCpuMs() - cpu);
    }
    passes.fastest_ms = *std::min_element(times.begin(), times.end());
    std::nth_element(cpu_times.begin(), cpu_times.begin() + kPasses / 2, cpu_times.end());
    passes.cpu_ms = cpu_times[kPasses / 2];
    return passes;
  }

 private:
  static RowMutation Marked(uint64_t i) {
    return {kTable, RowKey(i), {}, {Mutation::Set(Family::kNotify, kColumn, Timestamp(i + 1), EncodeMark({}))}};
  }
  static RowMutation Unmarked(uint64_t i) {
    return {kTable, RowKey(i), {}, {Mutation::Erase(Family::kNotify, kColumn, TimestampRange::UpTo(Timestamp(i + 1)))}};
  }

  void Fill() {
    ForEach(cells_, [&](uint64_t i) {
      const Timestamp start(i + 1);
      return RowMutation{
          kTable,
          RowKey(i),
          {},
          {Mutation::Set(
              Family::kWrite, kColumn, Timestamp(i + 2),
              EncodeWriteRecord(
                  {.kind = WriteKind::kPut, .start_ts = start, .verified = {}, .value = std::string(100, 'v')}))}};
    });
  }

  template <typename Make>
  void ForEach(uint64_t count, const Make& make) {
    for (uint64_t i = 0; i < count; i += kBatch) {
      std::vector<RowMutation> batch;
      for (uint64_t j = i; j < std::min(i + kBatch, count); ++j) batch.push_back(make(j));
      Apply(std::move(batch));
    }
  }

  void Apply(std::vector<RowMutation> batch) {
    for (const auto& result : store_->Mutate(batch)) Require(result.ok(), "Mutate");
  }

  size_t Pass() {
    size_t marks = 0;
    RowRange rows = RowRange::All();
    for (bool done = false; !done;) {
      const absl::StatusOr<std::vector<FoundMark>> found = ScanMarks(&env_, kTable, &rows, kPage, &done);
      Require(found.ok(), "ScanMarks");
      marks += found->size();
    }
    return marks;
  }

  const uint64_t cells_;
  std::shared_ptr<Store> store_;
  Environment env_;
};

void Print(uint64_t cells, const char* when, const Passes& passes) {
  std::printf("%10llu  %-34s %8zu %12.2f %12.2f\n", static_cast<unsigned long long>(cells), when, passes.marks,
              passes.fastest_ms, passes.cpu_ms);
  std::fflush(stdout);
}

void RunOne(const std::string& dir, uint64_t cells, uint64_t processed, const std::vector<uint64_t>& dirty) {
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  {
    Bench bench(dir + "/store", cells);
    for (const uint64_t marks : dirty) {
      bench.MarkCells(marks);
      Print(cells, "quiet", bench.Measure());
      bench.Unmark(marks);
    }
    bench.MarkCells(dirty[0]);
    bench.Process(processed, dirty[0]);
    Print(cells, "right after the notifications", bench.Measure());
    std::this_thread::sleep_for(std::chrono::seconds(3));
    Print(cells, "three seconds later", bench.Measure());
  }
  std::filesystem::remove_all(dir);
}

int Main(int argc, char** argv) {
  std::string dir = std::filesystem::temp_directory_path() / "percolator-scan-bench";
  uint64_t cells = 5'000'000;
  uint64_t processed = 1'000'000;
  CLI::App app(
      "The cost of a scanner's pass over the notifications of a table, by the size of the table and the number of "
      "notifications");
  app.add_option("--cells", cells, "cells of the large table")
      ->capture_default_str()
      ->check(CLI::Range(100'000, 1'000'000'000));
  app.add_option("--processed", processed, "notifications that come and go")
      ->capture_default_str()
      ->check(CLI::Range(10'000, 1'000'000'000));
  app.add_option("--dir", dir, "a folder for the databases; removed afterwards")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::printf("%10s  %-34s %8s %12s %12s\n", "cells", "when", "marks", "fastest, ms", "cpu, ms");
  RunOne(dir, 50'000, processed, {1000});
  RunOne(dir, cells, processed, {1000, 10'000});
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
