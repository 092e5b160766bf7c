// SPDX-License-Identifier: Apache-2.0

// Figure 8 of the paper: the cost of a transaction, compared with the store below it.
//
// Contestants take turns in one process, on data of the same size, with the same value:
//
//   RocksDB     Get, Put, and a WriteBatch of 4 keys, in a database of its own with the same cache, filter and compression
//   Store       our store's plain read of the newest version, and its unconditional write
//   two-phase   a transaction with the whole protocol: locks, commit point, write records
//   one-step    a transaction committed by one joint mutation, as the embedded cluster does by default
//
// A read is a snapshot of now and one Get. Before the first round each contestant reads every row once, to fill the caches:
// RocksDB's blocks on all sides, and the store's newest versions (--version-cache-bytes).
//
// A write is a transaction that sets one cell, unread, and commits: the paper's worst case, because several cells would share
// costs. Clusters have their default options except the durability, so garbage collection runs as usual. The paper found
// 0.94 for reads and 0.23 for writes.
//
// With --cluster the store is a server, and is compared with the server's own Bigtable API (figure8_remote.h).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/duel.h"
#include "benchmarks/figure8_remote.h"
#include "benchmarks/figure8_rows.h"
#include "benchmarks/require.h"
#include "percolator/cluster.h"
#include "percolator/spi/store.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

namespace percolator {
namespace {

constexpr char kTable[] = "t";
constexpr char kColumn[] = "c";
constexpr int kRowsTogether = 4;

struct Settings {
  int rows = 200'000;
  int value_bytes = 100;
  int rounds = 9;
  int round_ms = 200;
  std::vector<int> threads = {1, 2, 8};
  size_t version_cache_bytes = RocksOptions().version_cache_bytes;
  bool sync = true;
  bool nosync = true;
};

class Contest {
 public:
  Contest(const Settings& settings, Durability durability, const std::string& dir)
      : settings_(settings), value_(settings.value_bytes, 'v'), random_(64) {
    for (size_t i = 0; i < random_.size(); ++i) random_[i].state = 0x9E3779B97F4A7C15 * (i + 1);
    write_options_.sync = durability == Durability::kSync;
    std::filesystem::create_directories(dir);
    OpenRocks(dir + "/rocksdb");
    ClusterOptions options;
    options.store.durability = Durability::kNoSync;  // for loading
    options.store.version_cache_bytes = settings.version_cache_bytes;
    for (const bool reload : {true, false}) {
      options.one_step_commit = true;
      one_step_.emplace(OpenCluster(dir + "/one-step", options));
      options.one_step_commit = false;
      two_phase_.emplace(OpenCluster(dir + "/two-phase", options));
      if (!reload) break;
      for (const Cluster& cluster : {*one_step_, *two_phase_}) {
        Load(cluster);
        Require(cluster.Close().ok(), "Close");
      }
      options.store.durability = durability;
    }
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir + "/store", options.store);
    Require(store.ok(), "opening the store");
    store_ = *std::move(store);
    LoadStore();
  }

  // Fills the caches that readers use.
  void ReadAllOnce() {
    for (int i = 0; i < settings_.rows; ++i) {
      ReadRocks(i);
      ReadStore(i);
      ReadSnapshot(i);
    }
  }

  double Read(int threads) {
    Duel duel = MakeDuel("read one cell", threads);
    duel.Add("RocksDB: Get", [&](int t) { ReadRocks(Pick(t)); })
        .Add("Store: newest version", [&](int t) { ReadStore(Pick(t)); })
        .Add("Snapshot: Get", [&](int t) { ReadSnapshot(Pick(t)); });
    return duel.Run();
  }

  // Ratios of Store::Scan and of a snapshot's scan to an iterator of RocksDB, for 1,000 rows.
  std::pair<double, double> Scan(int threads) {
    constexpr int kRows = 1000;
    Duel duel = MakeDuel("scan 1,000 rows", threads);
    const auto first = [this](int t) { return RowName(Pick(t) * (settings_.rows - kRows) / settings_.rows); };
    duel.Add(
            "RocksDB: iterator",
            [&](int t) {
              const std::unique_ptr<rocksdb::Iterator> it(rocks_->NewIterator({}));
              size_t rows = 0;
              size_t bytes = 0;
              for (it->Seek(first(t)); it->Valid() && rows < kRows; it->Next(), ++rows) {
                bytes += it->key().size() + it->value().size();
              }
              Require(rows == kRows && bytes > 0, "iterating");
            },
            kRows)
        .Add(
            "Store: Scan",
            [&](int t) {
              ScanRequest request{.table = kTable, .row_limit = kRows};
              request.rows.start = first(t);
              request.selectors.push_back({Family::kWrite, std::nullopt, TimestampRange::All(), 1});
              const auto page = store_->Scan(request);
              Require(page.ok() && page->rows.size() == kRows, "Scan");
            },
            kRows)
        .Add(
            "Snapshot: Scan",
            [&](int t) {
              const absl::StatusOr<Snapshot> now = one_step_->GetSnapshot();
              Require(now.ok(), "GetSnapshot");
              size_t rows = 0;
              for (const auto& row : now->Scan(kTable, {.rows = {.start = first(t)}, .limit = kRows})) {
                Require(row.ok() && row->columns.size() == 1, "Scan");
                ++rows;
              }
              Require(rows == kRows, "Scan");
            },
            kRows);
    duel.Run();
    return {duel.ratios()[1], duel.ratios()[2]};
  }

  // Ratios of two-phase and one-step commits to RocksDB.
  std::pair<double, double> Write(int threads, int rows) {
    Duel duel = MakeDuel(rows == 1 ? "write one cell" : "write one cell in each of 4 rows", threads);
    duel.Add(rows == 1 ? "RocksDB: Put" : "RocksDB: WriteBatch, 4 keys",
             [&, rows](int t) {
               rocksdb::WriteBatch batch;
               for (int i = 0; i < rows; ++i) batch.Put(RowName(Pick(t)), value_);
               Require(rocks_->Write(write_options_, &batch).ok(), "Write");
             })
        .Add("Store: unconditional Mutate",
             [&, rows](int t) {
               std::vector<RowMutation> mutations;
               for (int i = 0; i < rows; ++i) {
                 mutations.push_back(
                     {kTable, RowName(Pick(t)), {}, {Mutation::Set(Family::kWrite, kColumn, Next(), value_)}});
               }
               for (const auto& result : store_->Mutate(mutations)) Require(result.ok(), "Mutate");
             })
        .Add("Transaction: two phases", [&, rows](int t) { Commit(*two_phase_, t, rows); })
        .Add("Transaction: one step", [&, rows](int t) { Commit(*one_step_, t, rows); });
    duel.Run();
    if (conflicts_ > 0)
      std::printf("  (%lld commits lost a conflict and were repeated)\n",
                  static_cast<long long>(conflicts_.exchange(0)));
    return {duel.ratios()[2], duel.ratios()[3]};
  }

  // The speedup of many threads over one, with one-step commits and, for comparison, with RocksDB.
  double Scaling(int threads) {
    const auto put = [&](int t) { Require(rocks_->Put(write_options_, RowName(Pick(t)), value_).ok(), "Put"); };
    const auto commit = [&](int t) { Commit(*one_step_, t, 1); };
    const std::string many = std::to_string(threads) + " threads";
    MakeDuel("write one cell", 1).Add("RocksDB: Put", put).AddWithThreads("RocksDB: Put, " + many, threads, put).Run();
    return MakeDuel("write one cell", 1)
        .Add("Transaction: one step", commit)
        .AddWithThreads("Transaction: one step, " + many, threads, commit)
        .Run();
  }

 private:
  Duel MakeDuel(const std::string& title, int threads) const {
    return {StrTitle(title), threads, settings_.rounds, std::chrono::milliseconds(settings_.round_ms)};
  }
  std::string StrTitle(const std::string& title) const { return title + (write_options_.sync ? ", sync" : ", nosync"); }

  void ReadRocks(uint64_t row) {
    std::string value;
    Require(rocks_->Get({}, RowName(row), &value).ok(), "Get");
  }

  void ReadStore(uint64_t row) {
    const auto rows = store_->Read({{kTable, RowName(row), {{Family::kWrite, kColumn, TimestampRange::All(), 1}}}});
    Require(rows.ok() && !rows->front().cells.empty(), "Read");
  }

  void ReadSnapshot(uint64_t row) {
    const absl::StatusOr<Snapshot> now = one_step_->GetSnapshot();
    Require(now.ok(), "GetSnapshot");
    const auto value = now->Get({kTable, RowName(row), kColumn});
    Require(value.ok() && value->has_value(), "Get");
  }

  void OpenRocks(const std::string& dir) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.max_background_jobs = 4;
    options.compression = rocksdb::kLZ4Compression;
    options.write_buffer_size = RocksOptions().write_buffer_bytes;
    options.max_write_buffer_number = 4;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(RocksOptions().block_cache_bytes);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    Require(rocksdb::DB::Open(options, dir, &db).ok(), "opening RocksDB");
    rocks_.reset(db);
    for (int i = 0; i < settings_.rows; ++i) Require(rocks_->Put({}, RowName(i), value_).ok(), "Put");
    Require(rocks_->CompactRange({}, nullptr, nullptr).ok(), "CompactRange");
  }

  static Cluster OpenCluster(const std::string& dir, const ClusterOptions& options) {
    absl::StatusOr<Cluster> cluster = Cluster::Open("rocksdb:" + dir, options);
    Require(cluster.ok(), "opening a cluster");
    return *std::move(cluster);
  }

  void Load(const Cluster& cluster) const {
    Require(cluster.CreateTable(kTable).ok(), "CreateTable");
    for (int first = 0; first < settings_.rows; first += 1000) {
      const absl::Status done = cluster.Transact([&](ReadWrite& t) {
        for (int i = first; i < std::min(first + 1000, settings_.rows); ++i) {
          t.Set({kTable, RowName(i), kColumn}, value_);
        }
      });
      Require(done.ok(), "loading");
    }
  }

  void LoadStore() {
    Require(store_->CreateTable({kTable, ""}).ok(), "CreateTable");
    for (int first = 0; first < settings_.rows; first += 1000) {
      std::vector<RowMutation> mutations;
      for (int i = first; i < std::min(first + 1000, settings_.rows); ++i) {
        mutations.push_back({kTable, RowName(i), {}, {Mutation::Set(Family::kWrite, kColumn, Next(), value_)}});
      }
      for (const auto& result : store_->Mutate(mutations)) Require(result.ok(), "Mutate");
    }
  }

  void Commit(const Cluster& cluster, int thread, int rows) {
    for (;;) {
      Transaction t(cluster);
      for (int i = 0; i < rows; ++i) t.Set({kTable, RowName(Pick(thread)), kColumn}, value_);
      const CommitResult result = t.Commit();
      if (result.committed()) return;
      Require(IsConflict(result.status), "Commit");
      ++conflicts_;
    }
  }

  uint64_t Pick(int thread) { return random_[thread].Below(settings_.rows); }
  Timestamp Next() { return Timestamp(++last_); }

  const Settings settings_;
  const std::string value_;
  std::vector<Random> random_;
  rocksdb::WriteOptions write_options_;
  std::unique_ptr<rocksdb::DB> rocks_;
  std::unique_ptr<Store> store_;
  std::optional<Cluster> one_step_;
  std::optional<Cluster> two_phase_;
  std::atomic<uint64_t> last_{0};
  std::atomic<int64_t> conflicts_{0};
};

int Main(int argc, char** argv) {
  Settings settings;
  std::string dir = std::filesystem::temp_directory_path() / "percolator-figure8";
  CLI::App app("The cost of a transaction, compared with the store below it: figure 8 of the paper");
  app.add_option("--rows", settings.rows, "rows in each database")
      ->capture_default_str()
      ->check(CLI::Range(1000, 10'000'000));
  app.add_option("--value-bytes", settings.value_bytes)->capture_default_str()->check(CLI::Range(1, 100'000));
  app.add_option("--rounds", settings.rounds, "rounds of each duel")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--round-ms", settings.round_ms, "length of a round")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  app.add_option("--threads", settings.threads, "numbers of threads")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--version-cache-bytes", settings.version_cache_bytes, "the store's cache of newest versions")
      ->capture_default_str();
  app.add_flag("--sync,!--no-sync-part", settings.sync, "with fsync")->capture_default_str();
  app.add_flag("--nosync,!--no-nosync-part", settings.nosync, "without fsync")->capture_default_str();
  app.add_option("--dir", dir, "a folder for the databases; removed afterwards")->capture_default_str();
  std::string cluster;
  app.add_option("--cluster", cluster,
                 "measure against the server at percolator://HOST:PORT instead, by default with 1, 8 and 64 threads");
  CLI11_PARSE(app, argc, argv);
  if (!cluster.empty()) {
    const bool chosen = app.count("--threads") > 0;
    return RunFigure8Remote({.cluster = cluster,
                             .rows = app.count("--rows") > 0 ? settings.rows : RemoteSettings().rows,
                             .value_bytes = settings.value_bytes,
                             .rounds = settings.rounds,
                             .round_ms = settings.round_ms,
                             .threads = chosen ? settings.threads : std::vector<int>{1, 8, 64}});
  }

  double read = 0;
  double scan = 0;
  double store_scan = 0;
  double two_phase = 0;
  double one_step = 0;
  double scaling = 0;
  std::filesystem::remove_all(dir);
  if (settings.nosync) {
    Contest contest(settings, Durability::kNoSync, dir + "/nosync");
    contest.ReadAllOnce();
    for (const int threads : settings.threads) {
      const double ratio = contest.Read(threads);
      if (threads == settings.threads.front()) read = ratio;
    }
    for (const int threads : settings.threads) {
      const auto [store, snapshot] = contest.Scan(threads);
      if (threads == settings.threads.front()) std::tie(store_scan, scan) = std::pair(store, snapshot);
    }
    for (const int threads : settings.threads) {
      const auto [two, one] = contest.Write(threads, 1);
      if (threads == settings.threads.front()) std::tie(two_phase, one_step) = std::pair(two, one);
    }
    for (const int threads : settings.threads) contest.Write(threads, kRowsTogether);
  }
  if (settings.sync) {
    Contest contest(settings, Durability::kSync, dir + "/sync");
    for (const int threads : settings.threads) contest.Write(threads, 1);
    for (const int threads : settings.threads) contest.Write(threads, kRowsTogether);
    scaling = contest.Scaling(32);
  }
  std::filesystem::remove_all(dir);
  std::printf(
      "figure8 read_ratio=%.2f write_ratio_2pc=%.2f write_ratio_onestep=%.2f sync_32_threads_to_1=%.1f scan_ratio=%.2f "
      "store_scan_ratio=%.2f\n",
      read, two_phase, one_step, scaling, scan, store_scan);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
