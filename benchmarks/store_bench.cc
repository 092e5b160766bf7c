// SPDX-License-Identifier: Apache-2.0

// The cost of the Store, compared with plain RocksDB for the same bytes.
//
// Two databases have the same options and the same cells: one behind the Store, one used directly. The direct one
// gets the final keys and has nothing to check, so it shows what RocksDB alone can do.
//
//   read      the newest version at or below a timestamp     against   Get of exactly that key
//   batch     32 such reads in one call                      against   32 Gets, and one MultiGet
//   mutate    one cell, on condition that it has no lock     against   a WriteBatch with the same key
//             and no version since
//   prewrite  lock and data, then write record for the lock  against   WriteBatches with the same keys
//   two steps a lock with the value, then a write record     against   Put of the value
//             with it for the lock: a transaction of one cell
//   one step  a write record with the value, by              against   Put of the value, and a WriteBatch of four
//             MutateTogether: the same, one row or four
//   scan      1000 rows of a family, newest version each     against   an iterator over the same keys

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/duel.h"
#include "benchmarks/require.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "src/oracle/local_oracle.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/rocks_options.h"
#include "src/store/rocks/rocks_store.h"

namespace percolator {
namespace {

constexpr char kTable[] = "t";
constexpr uint32_t kTableId = 1;
constexpr int kVersions = 3;  // of each cell
constexpr int kBatch = 32;
constexpr int kScanRows = 1000;

struct Settings {
  int rows = 200'000;
  int value_bytes = 100;
  int rounds = 9;
  int round_ms = 200;
  std::vector<std::string> only;

  bool Wants(const std::string& part) const {
    return only.empty() || std::find(only.begin(), only.end(), part) != only.end();
  }
};

// Ratios to plain RocksDB, for one thread.
struct Results {
  double read = 0, batch = 0, mutate = 0, scan = 0, one_step = 0, two_steps = 0;
};

std::string RowName(uint64_t i) {
  char name[32];
  std::snprintf(name, sizeof(name), "user%012llu", static_cast<unsigned long long>(i));
  return name;
}

// One cheap generator for each thread.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t Below(uint64_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % n;
  }

 private:
  uint64_t state_;
};

class Bench {
 public:
  Bench(const Settings& settings, Durability durability, const std::string& dir)
      : settings_(settings), value_(settings.value_bytes, 'v') {
    options_.durability = durability;
    write_options_.sync = durability == Durability::kSync;
    for (int i = 0; i < 64; ++i) random_.emplace_back(i + 1);
    store_dir_ = dir + "/store";
    raw_dir_ = dir + "/raw";
    std::filesystem::create_directories(dir);
    auto oracle = LocalOracle::Create(dir + "/oracle", Timestamp());
    Require(oracle.ok(), "making the oracle");
    oracle_ = *std::move(oracle);
    Open();
    Require(store_->CreateTable({kTable, ""}).ok(), "CreateTable");
  }
  ~Bench() { CloseRaw(); }

  void Load() {
    for (int version = 1; version <= kVersions; ++version) {
      for (int first = 0; first < settings_.rows; first += 500) {
        std::vector<RowMutation> mutations;
        rocksdb::WriteBatch batch;
        for (int i = first; i < std::min(first + 500, settings_.rows); ++i) {
          const Timestamp ts = VersionOf(i, version);
          mutations.push_back({kTable, RowName(i), {}, {Mutation::Set(Family::kWrite, "c", ts, value_)}});
          batch.Put(raw_family(Family::kWrite), Key(i, ts), value_);
        }
        for (const auto& result : store_->Mutate(mutations)) Require(result.ok(), "Mutate");
        Require(raw_->Write(write_options_, &batch).ok(), "Write");
      }
    }
  }

  void Settle() {
    for (rocksdb::DB* db : {store_->db(), raw_.get()}) {
      const bool is_store = db == store_->db();
      rocksdb::ColumnFamilyHandle* cf = is_store ? store_->family(Family::kWrite) : raw_family(Family::kWrite);
      Require(db->Flush(rocksdb::FlushOptions(), cf).ok(), "Flush");
      Require(db->CompactRange(rocksdb::CompactRangeOptions(), cf, nullptr, nullptr).ok(), "CompactRange");
    }
  }

  void Reopen() {
    Require(store_->Close().ok(), "Close");
    store_.reset();
    CloseRaw();
    Open();
  }

  double Read(const std::string& title, int threads, int version = kVersions) {
    return MakeDuel(title, threads)
        .Add("RocksDB: Get", [&](int t) { GetRaw(Pick(t), version); })
        .Add("Store: Read", [&](int t) { ReadStore({Pick(t)}, version); })
        .Run();
  }

  double Batch(int threads) {
    return MakeDuel("read 32 cells at once", threads)
        .Add(
            "RocksDB: 32 times Get",
            [&](int t) {
              for (int i = 0; i < kBatch; ++i) GetRaw(Pick(t), kVersions);
            },
            kBatch)
        .Add(
            "RocksDB: MultiGet", [&](int t) { MultiGetRaw(t); }, kBatch)
        .Add(
            "Store: Read", [&](int t) { ReadStore(PickMany(t), kVersions); }, kBatch)
        .Run();
  }

  double Mutate(const std::string& title, int threads) {
    return MakeDuel(title, threads)
        .Add("RocksDB: WriteBatch, 1 key",
             [&](int t) {
               rocksdb::WriteBatch batch;
               batch.Put(raw_family(Family::kWrite), Key(Pick(t), NextTimestamp()), value_);
               Require(raw_->Write(write_options_, &batch).ok(), "Write");
             })
        .Add("Store: Mutate, unconditional",
             [&](int t) { MutateStore(Pick(t), {}, {Mutation::Set(Family::kWrite, "c", NextTimestamp(), value_)}); })
        .Add("Store: Mutate, no lock and no newer version",
             [&](int t) {
               const Timestamp ts = NextTimestamp();
               MutateStore(Pick(t), Unlocked(ts), {Mutation::Set(Family::kWrite, "c", ts, value_)});
             })
        .Run();
  }

  double Prewrite(int threads) {
    return MakeDuel("prewrite and commit a row: 2 writes, 4 keys", threads)
        .Add("RocksDB: 2 WriteBatches", [&](int t) { PrewriteRaw(Pick(t)); })
        .Add("Store: 2 Mutates", [&](int t) { PrewriteStore(Pick(t), t); })
        .Run();
  }

  double TwoSteps(const std::string& title, int threads) {
    return MakeDuel(title, threads)
        .Add("RocksDB: Put", [&](int t) { PutRaw(Pick(t)); })
        .Add("RocksDB: 2 WriteBatches, 3 keys", [&](int t) { TwoStepsRaw(Pick(t)); })
        .Add("Store: 2 Mutates", [&](int t) { TwoStepsStore(Pick(t)); })
        .Run();
  }

  double OneStep(const std::string& title, int rows, int threads) {
    Duel duel = MakeDuel(title, threads);
    if (rows == 1) {
      duel.Add("RocksDB: Put", [&](int t) { PutRaw(Pick(t)); });
    } else {
      duel.Add("RocksDB: WriteBatch", [&, rows](int t) { BatchRaw(rows, t); });
    }
    return duel.Add("Store: MutateTogether", [&, rows](int t) { TogetherStore(rows, t); }).Run();
  }

  double Scan() {
    return MakeDuel("scan 1000 rows, newest version of each", 1)
        .Add(
            "RocksDB: iterator", [&](int t) { ScanRaw(t); }, kScanRows)
        .Add(
            "Store: Scan", [&](int t) { ScanStore(t); }, kScanRows)
        .Run();
  }

 private:
  Duel MakeDuel(const std::string& title, int threads) const {
    return {title, threads, settings_.rounds, std::chrono::milliseconds(settings_.round_ms)};
  }

  void Open() {
    absl::StatusOr<std::unique_ptr<RocksStore>> store = RocksStore::Open(store_dir_, options_, rocksdb::Env::Default());
    Require(store.ok(), "opening the store");
    store_ = *std::move(store);
    rocksdb::DB* raw = nullptr;
    Require(rocksdb::DB::Open(MakeDbOptions(options_, raw_dir_ + "-messages", rocksdb::Env::Default()), raw_dir_,
                              MakeColumnFamilies(options_), &raw_handles_, &raw)
                .ok(),
            "opening RocksDB");
    raw_.reset(raw);
  }

  void CloseRaw() {
    if (raw_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : raw_handles_) raw_->DestroyColumnFamilyHandle(handle);
    raw_handles_.clear();
    raw_.reset();
  }

  rocksdb::ColumnFamilyHandle* raw_family(Family family) { return raw_handles_[1 + static_cast<int>(family)]; }

  static std::string Key(uint64_t row, Timestamp ts) {
    return CellKey(CellPrefix(RowPrefix(kTableId, RowName(row)), "c"), ts);
  }
  // Each version has a timestamp of its own, like a version of a separate transaction.
  Timestamp VersionOf(uint64_t row, int version) const { return Timestamp(version * settings_.rows + row); }
  static Condition Unlocked(Timestamp ts) {
    return {Condition::Quantifier::kNone,
            {{Family::kLock, "c", TimestampRange::All()}, {Family::kWrite, "c", TimestampRange::From(ts)}}};
  }

  uint64_t Pick(int thread) { return random_[thread].Below(settings_.rows); }
  std::vector<uint64_t> PickMany(int thread) {
    std::vector<uint64_t> rows(kBatch);
    for (uint64_t& row : rows) row = Pick(thread);
    return rows;
  }
  Timestamp Drawn() { return oracle_->GetTimestamp().value(); }
  Timestamp NextTimestamp() { return Timestamp((kVersions + 2) * uint64_t{1'000'000'000} + clock_.fetch_add(1)); }

  void GetRaw(uint64_t row, int version) {
    rocksdb::PinnableSlice value;
    const std::string key = Key(row, VersionOf(row, version));
    Require(raw_->Get(rocksdb::ReadOptions(), raw_family(Family::kWrite), key, &value).ok(), "Get");
    const std::string copy = value.ToString();
    Require(copy.size() == value_.size(), "reading the value");
  }

  void MultiGetRaw(int thread) {
    std::vector<std::string> keys;
    std::vector<rocksdb::Slice> slices;
    for (uint64_t row : PickMany(thread)) keys.push_back(Key(row, VersionOf(row, kVersions)));
    for (const std::string& key : keys) slices.emplace_back(key);
    std::vector<rocksdb::PinnableSlice> values(kBatch);
    std::vector<rocksdb::Status> statuses(kBatch);
    raw_->MultiGet(rocksdb::ReadOptions(), raw_family(Family::kWrite), kBatch, slices.data(), values.data(),
                   statuses.data());
    for (int i = 0; i < kBatch; ++i) {
      const std::string copy = values[i].ToString();
      Require(statuses[i].ok() && copy.size() == value_.size(), "MultiGet");
    }
  }

  void ReadStore(const std::vector<uint64_t>& rows, int version) {
    std::vector<RowRead> reads;
    reads.reserve(rows.size());
    for (uint64_t row : rows) {
      const Timestamp snapshot(VersionOf(row, version).value() + settings_.rows / 2);
      reads.push_back({kTable, RowName(row), {{Family::kWrite, "c", TimestampRange::UpTo(snapshot), 1}}});
    }
    const auto result = store_->Read(reads);
    Require(result.ok(), "Read");
    for (const Row& row : *result) Require(row.cells.size() == 1 && row.cells[0].value.size() == value_.size(), "Read");
  }

  void MutateStore(uint64_t row, Condition condition, std::vector<Mutation> mutations) {
    std::vector<RowMutation> batch;
    batch.push_back({kTable, RowName(row), std::move(condition), std::move(mutations)});
    // The condition fails, correctly, if another thread has written a version in the meantime.
    Require(store_->Mutate(batch)[0].ok(), "Mutate");
  }

  void PutRaw(uint64_t row) {
    Require(raw_->Put(write_options_, raw_family(Family::kWrite), Key(row, NextTimestamp()), value_).ok(), "Put");
  }

  void BatchRaw(int rows, int thread) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < rows; ++i) batch.Put(raw_family(Family::kWrite), Key(Pick(thread), NextTimestamp()), value_);
    Require(raw_->Write(write_options_, &batch).ok(), "Write");
  }

  void TogetherStore(int rows, int thread) {
    JointMutation mutation;
    mutation.start_ts = Drawn();
    mutation.rows.reserve(rows);
    const uint64_t first = Pick(thread);
    for (int i = 0; i < rows; ++i) {
      // Rows that are far from each other.
      const uint64_t row = (first + static_cast<uint64_t>(i) * settings_.rows / rows) % settings_.rows;
      mutation.rows.push_back({kTable, RowName(row), Unlocked(mutation.start_ts), {}});
      mutation.rows.back().mutations.push_back(Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), value_));
    }
    Require(store_->MutateTogether(mutation, oracle_.get()).ok(), "MutateTogether");
  }

  void TwoStepsRaw(uint64_t row) {
    const Timestamp start = NextTimestamp();
    Require(raw_->Put(write_options_, raw_family(Family::kLock), Key(row, start), value_).ok(), "Put");
    rocksdb::WriteBatch commit;
    commit.Put(raw_family(Family::kWrite), Key(row, NextTimestamp()), value_);
    commit.Delete(raw_family(Family::kLock), Key(row, start));
    Require(raw_->Write(write_options_, &commit).ok(), "Write");
  }

  void TwoStepsStore(uint64_t row) {
    const Timestamp start = Drawn();
    MutateStore(row, Unlocked(start), {Mutation::Set(Family::kLock, "c", start, value_)});
    MutateStore(row, {Condition::Quantifier::kAll, {{Family::kLock, "c", TimestampRange::Exactly(start)}}},
                {Mutation::Set(Family::kWrite, "c", Drawn(), value_),
                 Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(start))});
  }

  void PrewriteRaw(uint64_t row) {
    const Timestamp start = NextTimestamp();
    rocksdb::WriteBatch prewrite;
    prewrite.Put(raw_family(Family::kData), Key(row, start), value_);
    prewrite.Put(raw_family(Family::kLock), Key(row, start), "lock");
    Require(raw_->Write(write_options_, &prewrite).ok(), "Write");
    rocksdb::WriteBatch commit;
    commit.Put(raw_family(Family::kWrite), Key(row, NextTimestamp()), "write");
    commit.Delete(raw_family(Family::kLock), Key(row, start));
    Require(raw_->Write(write_options_, &commit).ok(), "Write");
  }

  void PrewriteStore(uint64_t row, int /*thread*/) {
    const Timestamp start = NextTimestamp();
    MutateStore(row, Unlocked(start),
                {Mutation::Set(Family::kData, "c", start, value_), Mutation::Set(Family::kLock, "c", start, "lock")});
    MutateStore(row, {Condition::Quantifier::kAll, {{Family::kLock, "c", TimestampRange::Exactly(start)}}},
                {Mutation::Set(Family::kWrite, "c", NextTimestamp(), "write"),
                 Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(start))});
  }

  void ScanRaw(int thread) {
    rocksdb::ReadOptions options;
    options.total_order_seek = true;
    std::unique_ptr<rocksdb::Iterator> it(raw_->NewIterator(options, raw_family(Family::kWrite)));
    size_t bytes = 0;
    int versions = 0;
    for (it->Seek(RowPrefix(kTableId, RowName(Pick(thread)))); it->Valid() && versions < kScanRows * kVersions;
         it->Next()) {
      if (versions++ % kVersions == 0) bytes += it->key().ToString().size() + it->value().ToString().size();
    }
    Require(bytes > 0, "iterating");
  }

  void ScanStore(int thread) {
    ScanRequest request;
    request.table = kTable;
    request.rows.start = RowName(Pick(thread));
    request.selectors.push_back({Family::kWrite, std::nullopt, TimestampRange::All(), 1});
    request.row_limit = kScanRows;
    const auto page = store_->Scan(request);
    Require(page.ok() && !page->rows.empty(), "Scan");
  }

  const Settings settings_;
  const std::string value_;
  std::string store_dir_, raw_dir_;
  RocksOptions options_;
  rocksdb::WriteOptions write_options_;
  std::unique_ptr<LocalOracle> oracle_;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<rocksdb::DB> raw_;
  std::vector<rocksdb::ColumnFamilyHandle*> raw_handles_;
  std::vector<Random> random_;
  std::atomic<uint64_t> clock_{0};
};

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app(
      "The Store against plain RocksDB with the same bytes: rates per second, and the ratio to the first line.");
  app.add_option("--rows", settings.rows, "Rows with one cell of three versions")->capture_default_str();
  app.add_option("--value-bytes", settings.value_bytes, "Bytes in a value")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Rounds; the median counts")->capture_default_str();
  app.add_option("--round-ms", settings.round_ms, "Length of a contestant's turn")->capture_default_str();
  app.add_option("--only", settings.only, "Parts to run: read, scan, mutate, one-step, two-steps, sync. Default: all")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);

  std::string dir = (std::filesystem::temp_directory_path() / "percolator-bench-XXXXXX").string();
  Require(mkdtemp(dir.data()) != nullptr, "making a temporary folder");
  Results results;
  {
    Bench bench(settings, Durability::kNoSync, dir + "/nosync");
    bench.Load();
    if (settings.Wants("read")) bench.Read("read the newest version, not yet flushed", 1);
    bench.Settle();
    if (settings.Wants("read")) {
      results.read = bench.Read("read the newest version, compacted", 1);
      bench.Read("read the newest version, compacted", 2);
      bench.Read("read an older version, compacted", 1, /*version=*/1);
    }
    bench.Reopen();
    if (settings.Wants("read")) {
      bench.Read("read the newest version, just opened", 1);
      results.batch = bench.Batch(1);
    }
    if (settings.Wants("scan")) results.scan = bench.Scan();
    for (int threads : {1, 2, 8, 32}) {
      if (!settings.Wants("one-step")) break;
      const double ratio = bench.OneStep("commit a cell in one step, no fsync", 1, threads);
      if (threads == 1) results.one_step = ratio;
      bench.OneStep("commit 4 rows in one step, no fsync", 4, threads);
    }
    for (int threads : {1, 2, 8, 32}) {
      if (!settings.Wants("two-steps")) break;
      const double ratio = bench.TwoSteps("commit a cell in two steps, no fsync", threads);
      if (threads == 1) results.two_steps = ratio;
    }
    if (settings.Wants("mutate")) {
      results.mutate = bench.Mutate("mutate one cell, no fsync", 1);
      bench.Mutate("mutate one cell, no fsync", 2);
      bench.Mutate("mutate one cell, no fsync", 8);
      bench.Prewrite(1);
    }
    if (settings.Wants("read")) bench.Read("read while old and new versions are spread over files", 1);
  }
  if (settings.Wants("sync")) {
    Settings small = settings;
    small.rows = 10'000;
    Bench bench(small, Durability::kSync, dir + "/sync");
    bench.Load();
    for (int threads : {1, 32}) {
      bench.Mutate("mutate one cell, fsync", threads);
      bench.OneStep("commit a cell in one step, fsync", 1, threads);
      bench.TwoSteps("commit a cell in two steps, fsync", threads);
    }
  }
  std::filesystem::remove_all(dir);
  std::printf("store read_ratio=%.2f batch_ratio=%.2f mutate_ratio=%.2f scan_ratio=%.2f", results.read, results.batch,
              results.mutate, results.scan);
  std::printf(" one_step_ratio=%.2f two_steps_ratio=%.2f\n", results.one_step, results.two_steps);
  return 0;
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) { return percolator::Main(argc, argv); }
