// SPDX-License-Identifier: Apache-2.0

// The index that observers keep up to date equals the result of a batch program on the folder: after any changes, with
// any number of threads, whatever runs at the same time.
//
// Each sequence has a site of its own, which changes in rounds. After each round all tables and the serving side are
// compared. PERCOLATOR_WEBINDEX_SEQUENCES: the number of sequences. A sequence that fails prints how to run it again.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/crawl.h"
#include "apps/webindex/pipeline.h"
#include "apps/webindex/serving.h"
#include "apps/webindex/tables.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "percolator/status_macros.h"
#include "tests/processes/cluster_places.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/webindex/batch.h"
#include "tests/webindex/site.h"

namespace webindex {
namespace {

using percolator::Cluster;
using percolator::ClusterPlace;
using percolator::ClusterPlaceKind;
using percolator::IsOk;
using percolator::JointMutation;
using percolator::RowMutation;
using percolator::Snapshot;
using percolator::TempDir;
using percolator::Worker;

constexpr int kGroups = 10;  // so that parts of the test run in parallel

int Sequences() {
#if defined(__SANITIZE_THREAD__)
  constexpr int kDefault = 10;
#elif defined(__SANITIZE_ADDRESS__)
  constexpr int kDefault = 30;
#else
  constexpr int kDefault = 200;
#endif
  const char* wanted = std::getenv("PERCOLATOR_WEBINDEX_SEQUENCES");
  return wanted != nullptr ? std::atoi(wanted) : kDefault;
}

// The number of sequences on clusters of many processes, where each takes longer.
[[maybe_unused]] int Elsewhere() { return std::max(1, std::min(Sequences() / 60, 3)); }

uint64_t FirstSeed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("PERCOLATOR_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  return seed;
}

// Threads that refresh paths while others are changed.
class Refreshers {
 public:
  Refreshers(Crawl* crawl, int threads) : crawl_(crawl) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }

  void Tell(const std::vector<std::string>& paths) {
    const std::lock_guard<std::mutex> lock(mutex_);
    paths_.insert(paths_.end(), paths.begin(), paths.end());
    changed_.notify_all();
  }

  // Returns when all paths are refreshed, with the first error.
  absl::Status Finish() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      finishing_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    return status_;
  }

 private:
  std::optional<std::string> Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return finishing_ || !paths_.empty(); });
    if (paths_.empty()) return std::nullopt;
    std::string path = std::move(paths_.front());
    paths_.pop_front();
    return path;
  }

  void Run() {
    while (const std::optional<std::string> path = Take()) {
      const absl::Status status = crawl_->Refresh(*path);
      const std::lock_guard<std::mutex> lock(mutex_);
      status_.Update(status);
    }
  }

  Crawl* const crawl_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> paths_;
  absl::Status status_;
  bool finishing_ = false;
  std::vector<std::thread> threads_;
};

// Delays some transactions between their last read and their first write, so that runs overlap that otherwise hardly
// would.
class SlowStore : public percolator::ForwardingStore {
 public:
  // `percent`: of the transactions that are delayed.
  SlowStore(std::shared_ptr<percolator::Store> store, int percent)
      : ForwardingStore(std::move(store)), percent_(percent) {}

  std::vector<absl::StatusOr<percolator::MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    if (std::any_of(mutations.begin(), mutations.end(), TakesLock)) Delay();
    return ForwardingStore::Mutate(mutations);
  }
  std::vector<percolator::DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    if (std::any_of(mutations.begin(), mutations.end(), TakesLock)) Delay();
    return ForwardingStore::MutateThenDraw(mutations);
  }
  absl::StatusOr<percolator::JointResult> MutateTogether(const JointMutation& mutation,
                                                         percolator::Oracle* oracle) override {
    Delay();
    return ForwardingStore::MutateTogether(mutation, oracle);
  }

 private:
  // In two phases, the first phase takes locks.
  static bool TakesLock(const RowMutation& mutation) {
    return std::any_of(mutation.mutations.begin(), mutation.mutations.end(), [](const percolator::Mutation& m) {
      return m.kind == percolator::Mutation::Kind::kSet && m.family == percolator::Family::kLock;
    });
  }

  void Delay() {
    const uint32_t chance = ++transactions_ * 2654435761U >> 8;
    if (chance % 100 < static_cast<uint32_t>(percent_)) {
      std::this_thread::sleep_for(std::chrono::microseconds(chance / 100 % 3000));
    }
  }

  const int percent_;
  std::atomic<uint32_t> transactions_ = 0;
};

// The parts of a WebIndex, assembled here so that transactions can be slowed down.
class SlowIndex {
 public:
  struct Options {
    std::string address;
    percolator::ClusterOptions cluster;
    percolator::WorkerOptions worker;
    CrawlOptions crawl;
    int slow_percent = 0;  // of transactions
  };

  static absl::StatusOr<std::unique_ptr<SlowIndex>> Open(const Options& options) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, OpenCluster(options));
    std::unique_ptr<SlowIndex> index(new SlowIndex(cluster, options));
    PERCOLATOR_RETURN_IF_ERROR(index->Start(options));
    return index;
  }

  const Cluster& cluster() const { return cluster_; }
  Worker& worker() { return worker_; }
  Serving& serving() { return serving_; }
  Crawl& crawl() { return crawl_; }

  absl::Status Close() {
    EXPECT_THAT(worker_.Stop(), IsOk());
    return cluster_.Close();
  }

 private:
  SlowIndex(const Cluster& cluster, const Options& options)
      : cluster_(cluster), worker_(cluster, options.worker), crawl_(cluster, options.crawl) {}

  static absl::StatusOr<Cluster> OpenCluster(const Options& options) {
    if (options.slow_percent == 0) return Cluster::Open(options.address, options.cluster);
    PERCOLATOR_ASSIGN_OR_RETURN(percolator::Parts parts, percolator::OpenParts(options.address, options.cluster));
    parts.store = std::make_shared<SlowStore>(parts.store, options.slow_percent);
    return percolator::Assemble(parts, options.cluster);
  }

  absl::Status Start(const Options& options) {
    PERCOLATOR_RETURN_IF_ERROR(CreateTables(cluster_));
    {
      PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster_.GetSnapshot());
      PERCOLATOR_RETURN_IF_ERROR(serving_.Load(now));
    }
    AttachPipeline(worker_, {.base = options.crawl.base,
                             .deliver = [this](const percolator::Export& entry) { return serving_.Apply(entry); }});
    return worker_.Start();
  }

  const Cluster cluster_;
  Serving serving_;
  Worker worker_;
  Crawl crawl_;
};

// One sequence. Its seed determines everything except the timing of threads. Uses the empty cluster at the address;
// without an address, one in this process.
class Sequence {
 public:
  explicit Sequence(uint64_t seed, const std::string& address = "")
      : random_(seed), site_(dir_.path() + "/site", seed) {
    const bool on_disk = OneIn(6);
    options_.address = !address.empty() ? address : on_disk ? "rocksdb:" + dir_.path() + "/data" : "memory:";
    options_.cluster.store.durability = percolator::Durability::kNoSync;
    options_.cluster.one_step_commit = !OneIn(3);
    options_.cluster.lock_lease = std::chrono::milliseconds(500);
    if (OneIn(4)) {  // collects garbage all the time
      options_.cluster.gc_retention = std::chrono::seconds(1);
      options_.cluster.gc_period = std::chrono::milliseconds(50);
    }
    options_.worker.threads = 1 + static_cast<int>(Below(8));
    options_.worker.scanners = 1 + static_cast<int>(Below(2));
    options_.worker.scan_period = std::chrono::milliseconds(50);
    options_.worker.hints = !OneIn(5);
    options_.worker.claims = !OneIn(5);
    if (OneIn(2)) options_.slow_percent = 1 + static_cast<int>(Below(60));
    options_.crawl.folder = site_.folder();
    options_.crawl.base = std::string(kSiteBase);
    options_.crawl.threads = 1 + static_cast<int>(Below(4));
  }

  void Run() {
    site_.AddPages(5 + Below(36));
    ASSERT_NO_FATAL_FAILURE(Open());
    const uint64_t rounds = 3 + Below(4);
    for (uint64_t round = 0; round < rounds; ++round) {
      SCOPED_TRACE("round " + std::to_string(round) + " of " + std::to_string(rounds));
      compared_ = site_.log().size();
      ASSERT_NO_FATAL_FAILURE(MakeChanges(round == 0));
      ASSERT_NO_FATAL_FAILURE(Compare());
    }
    ASSERT_THAT(index_->Close(), IsOk());
  }

  // The settings of the sequence, and the changes of the round before it failed.
  std::string Describe() const {
    std::string text = options_.address + ", " + std::to_string(options_.worker.threads) + " threads" +
                       (options_.cluster.one_step_commit ? "" : ", two phases") +
                       (options_.worker.hints ? "" : ", no hints") + (options_.worker.claims ? "" : ", no claims") +
                       ", " + std::to_string(options_.slow_percent) + " % of transactions slow; " + how_ + "\n";
    for (size_t i = compared_; i < site_.log().size(); ++i) text += "  " + site_.log()[i] + "\n";
    return text;
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t bound) { return Below(bound) == 0; }

  void Open() {
    absl::StatusOr<std::unique_ptr<SlowIndex>> index = SlowIndex::Open(options_);
    ASSERT_THAT(index, IsOk());
    index_ = *std::move(index);
  }

  void MakeChanges(bool first) {
    if (!first && options_.address != "memory:" && OneIn(2)) {
      ASSERT_THAT(index_->Close(), IsOk());
      ASSERT_NO_FATAL_FAILURE(Open());
    }
    const auto changes = static_cast<int>(first ? 0 : 2 + Below(12));
    switch (first ? 0 : Below(3)) {
      case 0:
        how_ = "refreshed as a whole";
        for (int i = 0; i < changes; ++i) site_.Change();
        break;
      case 1:
        how_ = "refreshed path by path";
        ASSERT_NO_FATAL_FAILURE(ChangeAndRefresh(changes));
        return;
      default:
        how_ = "refreshed as a whole while it changed, and again";
        ASSERT_NO_FATAL_FAILURE(ChangeWhileCrawling(changes));
    }
    ASSERT_THAT(index_->crawl().Run(), IsOk());
  }

  void ChangeAndRefresh(int changes) {
    Refreshers refreshers(&index_->crawl(), 1 + static_cast<int>(Below(4)));
    for (int i = 0; i < changes; ++i) {
      refreshers.Tell(site_.Change());
      if (OneIn(3)) std::this_thread::sleep_for(std::chrono::microseconds(Below(5000)));
    }
    ASSERT_THAT(refreshers.Finish(), IsOk());
  }

  void ChangeWhileCrawling(int changes) {
    std::atomic<bool> enough = false;
    absl::Status status;
    std::thread crawling([&] {
      while (!enough && status.ok()) status = index_->crawl().Run().status();
    });
    for (int i = 0; i < changes; ++i) {
      site_.Change();
      std::this_thread::sleep_for(std::chrono::microseconds(Below(5000)));
    }
    enough = true;
    crawling.join();
    ASSERT_THAT(status, IsOk());
  }

  void Compare() {
    ASSERT_THAT(index_->worker().WaitUntilIdle(std::chrono::seconds(120)), IsOk());
    const auto quarantined = index_->worker().ListQuarantine();
    ASSERT_THAT(quarantined, IsOk());
    for (const percolator::Quarantined& entry : *quarantined) {
      ADD_FAILURE() << entry.observer << " of " << entry.cell.row << ": " << entry.error;
    }
    const absl::StatusOr<Snapshot> now = index_->cluster().GetSnapshot();
    ASSERT_THAT(now, IsOk());
    const std::vector<std::string> differences =
        Differences(ComputeBatch(site_.folder(), kSiteBase), *now, index_->serving());
    for (const std::string& difference : differences) ADD_FAILURE() << difference;
    ASSERT_TRUE(differences.empty());
  }

  std::mt19937_64 random_;
  TempDir dir_;
  Site site_;
  SlowIndex::Options options_;
  std::unique_ptr<SlowIndex> index_;
  size_t compared_ = 0;
  std::string how_;
};

class EqualToBatchTest : public ::testing::TestWithParam<int> {};

TEST_P(EqualToBatchTest, AfterAnyChanges) {
  for (int i = GetParam(); i < Sequences(); i += kGroups) {
    const uint64_t seed = FirstSeed() + static_cast<uint64_t>(i);
    Sequence sequence(seed);
    sequence.Run();
    if (!HasFailure()) continue;
    std::cout << sequence.Describe() << "again: PERCOLATOR_TEST_SEED=" << seed
              << " PERCOLATOR_WEBINDEX_SEQUENCES=1 equal_to_batch_test\n";
    return;
  }
}

#if !defined(__SANITIZE_THREAD__)  // its suppressed reports about gRPC's servers take seconds for every answer
// The same on clusters of many processes, each sequence at a place of its own.
class EqualToBatchElsewhereTest : public ::testing::TestWithParam<ClusterPlaceKind> {};

TEST_P(EqualToBatchElsewhereTest, AfterAnyChanges) {
  for (int i = 0; i < Elsewhere(); ++i) {
    absl::StatusOr<std::unique_ptr<ClusterPlace>> place = GetParam().make();
    if (absl::IsUnavailable(place.status())) GTEST_SKIP() << place.status();
    ASSERT_THAT(place, IsOk());
    const uint64_t seed = FirstSeed() + static_cast<uint64_t>(i);
    Sequence sequence(seed, (*place)->address());
    sequence.Run();
    if (!HasFailure()) continue;
    std::cout << sequence.Describe() << "again: PERCOLATOR_TEST_SEED=" << seed << "\n";
    return;
  }
}

constexpr ClusterPlaceKind kPlaces[] = {
    {"percolator", &percolator::MakeServerPlace},
#if !defined(__SANITIZE_ADDRESS__)  // there it is mostly other programs that run
    {"bigtable", &percolator::MakeBigtablePlace},
#endif
};
INSTANTIATE_TEST_SUITE_P(Places, EqualToBatchElsewhereTest, ::testing::ValuesIn(kPlaces),
                         [](const auto& kind) { return std::string(kind.param.name); });
#endif

INSTANTIATE_TEST_SUITE_P(Groups, EqualToBatchTest, ::testing::Range(0, kGroups));

}  // namespace
}  // namespace webindex
