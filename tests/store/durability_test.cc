// SPDX-License-Identifier: Apache-2.0

// The content of a store after its process was killed: everything acknowledged, with either durability, and nothing
// half applied.
//
// PERCOLATOR_KILL_CYCLES sets how often each test kills (20 by default), PERCOLATOR_TEST_SEED sets the seed of the
// writes.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "tests/store/crash_child.h"
#include "tests/store/crash_ledger.h"
#include "tests/store/crash_process.h"
#include "tests/store/crash_settings.h"
#include "tests/store/crash_workload.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using Clock = CrashProcess::Clock;

constexpr size_t kLargeBuffer = 16 << 20;
constexpr size_t kSmallBuffer = 64 << 10;

bool IsOpened(const CrashReport& report) { return report.writer == kOpened; }
void Ignore(const CrashReport&) {}

class DurabilityTest : public ::testing::Test {
 protected:
  DurabilityTest() : random_(CrashSeed()) {}

  milliseconds Between(int64_t from, int64_t to) {
    return milliseconds(std::uniform_int_distribution<int64_t>(from, to)(random_));
  }

  static std::vector<std::string> ChildArgs(const char* mode, const std::string& dir, const RocksOptions& options) {
    return {mode, dir, options.durability == Durability::kSync ? "sync" : "nosync",
            std::to_string(options.write_buffer_bytes)};
  }

  // Kills a process that only opens and closes the store.
  void KillWhileOpening(const std::string& dir, const RocksOptions& options) {
    CrashProcess child(CRASH_CHILD, ChildArgs("open", dir, options));
    ASSERT_TRUE(child.Listen(Clock::now() + Between(0, 60), Ignore)) << "the child failed, see its text";
    ASSERT_TRUE(child.Kill(Ignore));
  }

  // Kills a writing process, some time after `least` mutations in total are acknowledged.
  void KillWhileWriting(const std::string& dir, const RocksOptions& options, uint64_t least, CrashLedger* ledger) {
    std::vector<std::string> args = ChildArgs("write", dir, options);
    args.push_back(std::to_string(ledger->plan().seed));
    args.push_back(std::to_string(ledger->plan().value_bytes));
    for (uint32_t i = 0; i < ledger->plan().writers; ++i) args.push_back(std::to_string(ledger->NextStep(i)));
    const auto on_report = [ledger](const CrashReport& report) {
      if (IsOpened(report)) return;
      ledger->Sending(report.writer, report.step);
      ledger->Done(report);
    };
    CrashProcess child(CRASH_CHILD, args);
    bool ready = false;
    ASSERT_TRUE(child.Listen(Clock::now() + kHangs, on_report, [&](const CrashReport&) {
      return ready = ledger->acknowledged() >= least;  // the first report announces that the store is open
    })) << "the child failed, see its text";
    ASSERT_TRUE(ready) << "the child did not open the store and write in time";
    ASSERT_TRUE(child.Listen(Clock::now() + Between(1, 300), on_report)) << "the child failed, see its text";
    ASSERT_TRUE(child.Kill(on_report));
    // Each writer had at most one step of unknown outcome in progress.
    for (uint32_t i = 0; i < ledger->plan().writers; ++i) ledger->Sending(i, ledger->NextStep(i));
  }

  static void Verify(const std::string& dir, const RocksOptions& options, CrashLedger* ledger) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir, options);
    ASSERT_THAT(store, IsOk());
    const std::vector<std::string> problems = ledger->Verify(store->get(), CrashLedger::Expect::kNothingLost);
    ASSERT_THAT(problems, ::testing::IsEmpty());
    ASSERT_THAT((*store)->Close(), IsOk());
  }

  void KillAgainAndAgain(const RocksOptions& options, const CrashPlan& plan) {
    const std::string dir = dir_.path() + "/store";
    CrashLedger ledger(plan);
    {
      absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir, options);
      ASSERT_THAT(store, IsOk());
      ASSERT_THAT(CreateCrashTables(store->get()), IsOk());
    }
    const int cycles = CrashCycles("PERCOLATOR_KILL_CYCLES", Amount(20, 7));
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE(StrCat("seed ", plan.seed, ", cycle ", cycle));
      KillWhileWriting(dir, options, kLeastPerCycle * (cycle + 1), &ledger);
      if (HasFatalFailure()) return;
      // Recovery may be killed too.
      if (cycle % 3 == 0) KillWhileOpening(dir, options);
      if (HasFatalFailure()) return;
      Verify(dir, options, &ledger);
      if (HasFatalFailure()) return;
    }
    std::printf("seed %llu: %d kills, %llu mutations acknowledged, %llu verified\n",
                static_cast<unsigned long long>(plan.seed), cycles,
                static_cast<unsigned long long>(ledger.acknowledged()),
                static_cast<unsigned long long>(ledger.verified()));
    EXPECT_EQ(ledger.acknowledged(), ledger.verified());
    EXPECT_GE(ledger.acknowledged(), kLeastPerCycle * cycles) << "too few writes to show anything";
  }

  TempDir dir_;
  std::mt19937_64 random_;
};

TEST_F(DurabilityTest, NothingAcknowledgedIsLostByAKillWithoutSync) {
  RocksOptions options;
  options.durability = Durability::kNoSync;
  options.write_buffer_bytes = kLargeBuffer;
  KillAgainAndAgain(options, {.seed = CrashSeed()});
}

TEST_F(DurabilityTest, NothingAcknowledgedIsLostByAKillWithSync) {
  RocksOptions options;
  options.durability = Durability::kSync;
  options.write_buffer_bytes = kLargeBuffer;
  KillAgainAndAgain(options, {.seed = CrashSeed()});
}

TEST_F(DurabilityTest, NothingAcknowledgedIsLostByAKillDuringFlushesAndCompactions) {
  RocksOptions options;
  options.durability = Durability::kNoSync;
  options.write_buffer_bytes = kSmallBuffer;
  KillAgainAndAgain(options, {.seed = CrashSeed(), .value_bytes = 2000});
}

TEST_F(DurabilityTest, StoreThatIsKilledWhileItIsCreatedCanBeOpened) {
  const int cycles = CrashCycles("PERCOLATOR_KILL_CYCLES", Amount(20, 7));
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const std::string dir = StrCat(dir_.path(), "/new-", cycle);
    KillWhileOpening(dir, {});
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(CreateCrashTables(store->get()), IsOk());
    const absl::StatusOr<std::vector<TableInfo>> tables = (*store)->ListTables();
    ASSERT_THAT(tables, IsOk());
    ASSERT_EQ(tables->size(), CrashTables().size());
    for (const TableInfo& table : *tables) EXPECT_EQ(table.schema, "schema of " + table.name);
  }
}

TEST_F(DurabilityTest, SecondProcessCannotOpenTheStore) {
  const std::string dir = dir_.path() + "/store";
  std::vector<std::string> args = ChildArgs("write", dir, {});
  { ASSERT_THAT(CreateCrashTables(OpenRocksStore(dir).value().get()), IsOk()); }
  for (const char* arg : {"1", "100", "1"}) args.emplace_back(arg);
  CrashProcess child(CRASH_CHILD, args);
  ASSERT_TRUE(child.Listen(Clock::now() + kHangs, Ignore, IsOpened));
  const absl::StatusOr<std::unique_ptr<Store>> second = OpenRocksStore(dir);
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(second.status().message(), ::testing::HasSubstr(dir));
  ASSERT_TRUE(child.Kill(Ignore));
  EXPECT_THAT(OpenRocksStore(dir), IsOk());
}

}  // namespace
}  // namespace percolator
