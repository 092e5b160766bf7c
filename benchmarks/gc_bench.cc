// SPDX-License-Identifier: Apache-2.0

// The size of the store over time under a steady overwrite load, with and without garbage collection.
//
// Two clusters take turns. Each overwrites the same cells for a while, as fast as it can. One collects garbage with a short
// retention, and the other never does. After every turn the benchmark prints the versions of family write, the bytes on disk
// and the commits per second: they show that the size stays, and what that costs.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "benchmarks/require.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"

namespace percolator {
namespace {

constexpr char kTable[] = "t";

class Load {
 public:
  Load(const std::string& dir, int rows, Duration retention, Duration period) : dir_(dir), rows_(rows) {
    ClusterOptions options;
    options.store.durability = Durability::kNoSync;
    options.store.write_buffer_bytes = 4 << 20;
    options.lock_lease = retention / 2;
    options.gc_retention = retention;
    options.gc_period = period;
    const absl::StatusOr<Parts> parts = OpenParts("rocksdb:" + dir, options);
    Require(parts.ok(), "opening the store");
    store_ = parts->store;
    const absl::StatusOr<Cluster> cluster = Assemble(*parts, options);
    Require(cluster.ok(), "assembling the cluster");
    cluster_ = *cluster;
    Require(cluster_->CreateTable(kTable).ok(), "CreateTable");
  }

  // Commits per second.
  double Run(Duration duration) {
    const auto start = std::chrono::steady_clock::now();
    int64_t commits = 0;
    while (std::chrono::steady_clock::now() - start < duration) {
      const std::string row = "row" + std::to_string(next_++ % rows_);
      const absl::Status done = cluster_->Transact([&](ReadWrite& t) {
        t.Set({kTable, row, "c"}, std::string(100, 'v'));
      });
      Require(done.ok(), "Transact");
      ++commits;
    }
    return static_cast<double>(commits) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  size_t Versions() {
    size_t versions = 0;
    ScanRequest request{kTable, RowRange::All(), {{Family::kWrite}}};
    for (;;) {
      const absl::StatusOr<ScanPage> page = store_->Scan(request);
      Require(page.ok(), "Scan");
      for (const Row& row : page->rows) versions += row.cells.size();
      if (!page->resume.has_value()) return versions;
      request.rows.start = *page->resume;
    }
  }

  double MegabytesOnDisk() const {
    uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(dir_)) {
      std::error_code gone;
      if (file.is_regular_file(gone) && file.path().extension() == ".sst") bytes += file.file_size(gone);
    }
    return static_cast<double>(bytes) / (1 << 20);
  }

 private:
  const std::string dir_;
  const int rows_;
  int64_t next_ = 0;
  std::shared_ptr<Store> store_;
  std::optional<Cluster> cluster_;
};

int Main(int argc, char** argv) {
  std::string dir = std::filesystem::temp_directory_path() / "percolator-gc-bench";
  int rows = 1000;
  int turns = 10;
  CLI::App app("The size of the store under a steady overwrite load, with and without garbage collection");
  app.add_option("--rows", rows, "number of cells that are overwritten")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--turns", turns, "turns of one second each")->capture_default_str()->check(CLI::Range(1, 3600));
  app.add_option("--dir", dir, "a folder for the databases; removed afterwards")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  {
    Load with(dir + "/with", rows, std::chrono::seconds(1), std::chrono::milliseconds(200));
    Load without(dir + "/without", rows, std::chrono::seconds(1), Duration(0));
    std::printf("%5s  %32s  %32s\n", "turn", "with gc: versions, MB, commits/s", "without: versions, MB, commits/s");
    for (int turn = 1; turn <= turns; ++turn) {
      const double rate_with = with.Run(std::chrono::seconds(1));
      const double rate_without = without.Run(std::chrono::seconds(1));
      std::printf("%5d  %14zu %6.1f %10.0f  %14zu %6.1f %10.0f\n", turn, with.Versions(), with.MegabytesOnDisk(),
                  rate_with, without.Versions(), without.MegabytesOnDisk(), rate_without);
      std::fflush(stdout);
    }
    std::printf("gc versions_per_cell=%.1f without=%.1f\n", static_cast<double>(with.Versions()) / rows,
                static_cast<double>(without.Versions()) / rows);
  }
  std::filesystem::remove_all(dir);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
