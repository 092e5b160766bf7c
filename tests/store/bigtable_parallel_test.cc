// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "percolator/spi/mutex.h"
#include "src/store/bigtable/parallel.h"

namespace percolator {
namespace {

// Counts how often each piece of work is done, by which thread, and how many at once.
class Ledger {
 public:
  // Each piece lasts until at least this number have been in progress at once.
  explicit Ledger(size_t count, size_t at_once = 1) : done_(count, 0), least_at_once_(at_once) {}

  void Do(size_t i) {
    {
      MutexLock lock(&mutex_);
      ++done_.at(i);
      workers_.insert(std::this_thread::get_id());
      most_at_once_ = std::max(most_at_once_, ++at_once_);
    }
    for (int n = 0; n == 0 || (n < 60'000 && most_at_once() < least_at_once_); ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    MutexLock lock(&mutex_);
    --at_once_;
  }

  void ExpectEachOnce() {
    MutexLock lock(&mutex_);
    EXPECT_EQ(done_, std::vector<int>(done_.size(), 1));
    EXPECT_EQ(at_once_, 0u);
  }
  size_t workers() {
    MutexLock lock(&mutex_);
    return workers_.size();
  }
  size_t most_at_once() {
    MutexLock lock(&mutex_);
    return most_at_once_;
  }

 private:
  Mutex mutex_;
  std::vector<int> done_ ABSL_GUARDED_BY(mutex_);
  const size_t least_at_once_;
  std::set<std::thread::id> workers_ ABSL_GUARDED_BY(mutex_);
  size_t at_once_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_at_once_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ParallelTest, EveryPieceIsDoneOnce) {
  Parallel parallel(4);
  for (const size_t count : {0, 1, 2, 5, 50}) {
    Ledger ledger(count);
    parallel.ForEach(count, [&ledger](size_t i) { ledger.Do(i); });
    ledger.ExpectEachOnce();
  }
}

TEST(ParallelTest, ALonePieceIsDoneByTheCaller) {
  Parallel parallel(4);
  std::thread::id worker;
  parallel.ForEach(1, [&worker](size_t) { worker = std::this_thread::get_id(); });
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(ParallelTest, SeveralAreDoneAtOnceUpToTheNumberOfThreads) {
  Parallel parallel(3);
  Ledger ledger(60, /*at_once=*/2);
  parallel.ForEach(60, [&ledger](size_t i) { ledger.Do(i); });
  EXPECT_GT(ledger.most_at_once(), 1u);
  EXPECT_LE(ledger.most_at_once(), 4u) << "three threads and the caller";
  EXPECT_LE(ledger.workers(), 4u);
}

TEST(ParallelTest, CallersDoNotDisturbEachOther) {
  Parallel parallel(2);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&parallel] {
      for (int i = 0; i < 10; ++i) {
        Ledger ledger(7);
        parallel.ForEach(7, [&ledger](size_t piece) { ledger.Do(piece); });
        ledger.ExpectEachOnce();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace percolator
