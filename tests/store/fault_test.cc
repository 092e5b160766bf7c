// SPDX-License-Identifier: Apache-2.0

// The store on a disk that loses power, is full, or fails: nothing acknowledged is lost, nothing is half applied, and
// every failure is a clear status.
//
// PERCOLATOR_POWER_CYCLES sets how often each test cuts the power (30 by default). PERCOLATOR_FAULT_STRIDE=N fails one
// of every N operations, with a random start (15 by default; 1 fails every one). PERCOLATOR_TEST_SEED sets the seed of
// the writes.

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/store.h"
#include "rocksdb/env.h"
#include "src/base/strings.h"
#include "src/store/rocks/rocks_store.h"
#include "tests/harness/test_oracle.h"
#include "tests/store/crash_ledger.h"
#include "tests/store/crash_settings.h"
#include "tests/store/crash_workload.h"
#include "tests/store/fault_fs.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Expect = CrashLedger::Expect;
using Fault = FaultFs::Fault;
using Loss = FaultFs::Loss;
using std::chrono::milliseconds;

constexpr size_t kLargeBuffer = 4 << 20;
constexpr size_t kSmallBuffer = 64 << 10;

RocksOptions Options(Durability durability, size_t write_buffer_bytes) {
  RocksOptions options;
  options.durability = durability;
  options.write_buffer_bytes = write_buffer_bytes;
  options.block_cache_bytes = 1 << 20;
  options.reserve_bytes = 0;  // tests of full disks have to fill the disk
  return options;
}

// Whether a status has a message, and a code that the contract lists.
bool IsClear(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
      return !status.message().empty();
    default:
      return false;
  }
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class FaultTest : public ::testing::Test {
 protected:
  FaultTest() : fs_(std::make_shared<FaultFs>()), env_(rocksdb::NewCompositeEnv(fs_)), random_(CrashSeed()) {
    std::printf("PERCOLATOR_TEST_SEED=%llu\n", static_cast<unsigned long long>(CrashSeed()));
  }

  uint64_t Between(uint64_t from, uint64_t to) { return std::uniform_int_distribution<uint64_t>(from, to)(random_); }

  std::string Dir() const { return dir_.path() + "/store"; }
  absl::StatusOr<std::unique_ptr<Store>> Open(const RocksOptions& options) {
    return OpenRocksStoreWithEnv(Dir(), options, env_.get());
  }
  void CreateStore(const RocksOptions& options) {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(CreateCrashTables(store->get()), IsOk());
    ASSERT_THAT((*store)->Close(), IsOk());
  }

  // Leaves the folder as after a loss of power, with the power back. REQUIRES: the store is destroyed, or will not be
  // used.
  void LosePower(Loss loss) {
    fs_->Heal();
    fs_->PowerLoss(loss, Between(0, 1 << 30));
    fs_->PowerOn();
  }

  void OpenAndVerify(const RocksOptions& options, CrashLedger* ledger, Expect expect) {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(ledger->Verify(store->get(), expect), IsEmpty());
    ASSERT_THAT((*store)->Close(), IsOk());
  }

  TempDir dir_;
  std::shared_ptr<FaultFs> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::mt19937_64 random_;
};

// Writers in background threads, until stopped or failed.
class Writers {
 public:
  Writers(Store* store, CrashLedger* ledger, uint64_t steps_after_error = 0, uint64_t max_steps = ~uint64_t{0})
      : ledger_(ledger),
        steps_after_error_(steps_after_error),
        max_steps_(max_steps),
        running_(ledger->plan().writers) {
    for (uint32_t i = 0; i < ledger->plan().writers; ++i) {
      threads_.emplace_back([this, store, ledger, i] {
        RunCrashWriter(store, ledger->plan(), i, ledger->NextStep(i), Listener(ledger));
        --running_;
      });
    }
  }
  ~Writers() { Stop(); }

  // Waits until all have failed or done their steps, or `limit` is over.
  void Wait(milliseconds limit = kHangs) {
    WaitUntil(limit, [] { return false; });
  }
  // Waits until all have failed or done their steps, or `least` mutations in total are acknowledged.
  void WaitForWrites(uint64_t least) {
    WaitUntil(kHangs, [this, least] { return ledger_->acknowledged() >= least; });
  }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // The errors of the writers, in no particular order.
  std::vector<absl::Status> errors() {
    MutexLock lock(&mutex_);
    return errors_;
  }

 private:
  void WaitUntil(milliseconds limit, const std::function<bool()>& enough) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (running_ > 0 && !enough() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  CrashListener Listener(CrashLedger* ledger) {
    CrashListener listener;
    listener.sending = [ledger](uint32_t writer, uint64_t step) { ledger->Sending(writer, step); };
    auto steps_left = std::make_shared<uint64_t>(max_steps_);
    listener.done = [this, ledger, steps_left](const CrashReport& report, const absl::Status& error) {
      ledger->Done(report);
      if (!error.ok()) {
        *steps_left = std::min(*steps_left, steps_after_error_ + 1);
        MutexLock lock(&mutex_);
        errors_.push_back(error);
      }
      return --*steps_left > 0 && !stop_;
    };
    return listener;
  }

  CrashLedger* const ledger_;
  const uint64_t steps_after_error_;
  const uint64_t max_steps_;
  std::atomic<uint32_t> running_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  std::vector<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// ---- Loss of power

class PowerLossTest : public FaultTest {
 protected:
  // Writes until the power fails: at a random operation, or if `least` is given, some time after this number of
  // mutations in total is acknowledged.
  void WriteUntilPowerIsCut(const RocksOptions& options, CrashLedger* ledger, Loss loss,
                            std::optional<uint64_t> least) {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    if (!least) fs_->Inject({.kind = Fault::Kind::kPowerCut, .nth = Between(1, 1500)});
    Writers writers(store->get(), ledger);
    if (least) writers.WaitForWrites(*least);
    writers.Wait(milliseconds(Between(5, 150)));
    fs_->CutPower();
    writers.Stop();
    store->reset();
    LosePower(loss);
  }

  // Opens the store while the power fails at a random operation, which may come after the open has ended.
  void CutPowerWhileOpening(const RocksOptions& options, Loss loss) {
    fs_->Inject({.kind = Fault::Kind::kPowerCut, .nth = Between(1, 80)});
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    if (!store.ok()) {
      EXPECT_TRUE(IsClear(store.status())) << store.status();
    }
    fs_->CutPower();
    if (store.ok()) store->reset();
    LosePower(loss);
  }

  void CutPowerAgainAndAgain(Durability durability, Expect expect) {
    CrashLedger ledger({.seed = CrashSeed(), .value_bytes = 500});
    CreateStore(Options(durability, kLargeBuffer));
    if (HasFatalFailure()) return;
    fs_->SyncDelay(std::chrono::microseconds(100));
    const int cycles = CrashCycles("PERCOLATOR_POWER_CYCLES", Amount(30, 10));
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE(StrCat("cycle ", cycle));
      // Without sync several logs may be unsynced at once, and lose their ends independently. That can leave a gap,
      // which kNoSync allows. Only the loss of everything unsynced certainly leaves a prefix.
      const Loss loss = durability == Durability::kSync ? static_cast<Loss>(cycle % 3) : Loss::kAll;
      const RocksOptions options = Options(durability, cycle % 2 == 0 ? kSmallBuffer : kLargeBuffer);
      std::optional<uint64_t> least;
      if (Between(0, 1) == 0 || cycle == cycles - 1) least = kLeastPerCycle * (cycle + 1);
      WriteUntilPowerIsCut(options, &ledger, loss, least);
      if (HasFatalFailure()) return;
      if (Between(0, 1) == 0) CutPowerWhileOpening(options, loss);
      OpenAndVerify(options, &ledger, expect);
      if (HasFatalFailure()) return;
    }
    std::printf("%d losses of power, %llu mutations acknowledged and verified\n", cycles,
                static_cast<unsigned long long>(ledger.verified()));
    EXPECT_GE(ledger.acknowledged(), kLeastPerCycle * cycles) << "too few writes to show anything";
  }
};

TEST_F(PowerLossTest, NothingAcknowledgedIsLostWithSync) {
  CutPowerAgainAndAgain(Durability::kSync, Expect::kNothingLost);
}

TEST_F(PowerLossTest, WithoutSyncAPrefixOfTheWritesIsLeft) {
  CutPowerAgainAndAgain(Durability::kNoSync, Expect::kPrefix);
}

TEST_F(PowerLossTest, WithoutSyncNothingIsLostAfterAClose) {
  const RocksOptions options = Options(Durability::kNoSync, kSmallBuffer);
  CrashLedger ledger({.seed = CrashSeed()});
  CreateStore(options);
  for (int cycle = 0; cycle < 6; ++cycle) {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    Writers writers(store->get(), &ledger);
    writers.WaitForWrites(100 * (cycle + 1));
    writers.Wait(milliseconds(50));
    writers.Stop();
    ASSERT_THAT(writers.errors(), IsEmpty());
    ASSERT_THAT((*store)->Close(), IsOk());
    LosePower(static_cast<Loss>(cycle % 3));
    OpenAndVerify(options, &ledger, Expect::kNothingLost);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(ledger.acknowledged(), 600u);
}

TEST_F(PowerLossTest, StoreThatIsBeingCreatedCanBeOpenedAfterwards) {
  // Up to the point where the store is open: then the loop ends.
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 1000u);
    SCOPED_TRACE(StrCat("power cut at operation ", nth));
    std::filesystem::remove_all(Dir());
    fs_->Inject({.kind = Fault::Kind::kPowerCut, .nth = nth});
    absl::StatusOr<std::unique_ptr<Store>> store = Open({});
    const bool done = store.ok() && fs_->Failed() == 0;
    if (store.ok()) store->reset();
    LosePower(static_cast<Loss>(nth % 3));
    ASSERT_THAT(Open({}), IsOk());
    if (done) break;
  }
}

// ---- Errors of the disk

struct SweepCase {
  const char* name;
  Fault::Kind kind;
  bool persistent;
  Durability durability;
};

void PrintTo(const SweepCase& sweep, std::ostream* os) { *os << sweep.name; }

class FaultSweepTest : public FaultTest, public ::testing::WithParamInterface<SweepCase> {
 protected:
  // Opens the store, with the fault armed from the start, and writes enough for a few flushes.
  void Round(const RocksOptions& options, CrashLedger* ledger) {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    if (!store.ok()) {
      EXPECT_TRUE(IsClear(store.status())) << store.status();
      return;
    }
    const bool failed_while_opening = fs_->Failed() > 0;
    Writers writers(store->get(), ledger, /*steps_after_error=*/2, /*max_steps=*/30);
    writers.Wait();
    writers.Stop();
    for (const absl::Status& error : writers.errors()) EXPECT_TRUE(IsClear(error)) << error;
    if (fs_->Failed() == 0) {
      EXPECT_THAT(writers.errors(), IsEmpty());
    }
    // Only writes fail: existing data can be read, unless a joint mutation has failed.
    const absl::Status readable = ScanAll(store->get());
    if (absl::IsFailedPrecondition(readable)) {
      ++rounds_with_rows_closed_;
      EXPECT_THAT(writers.errors(), ::testing::Not(IsEmpty()));
      EXPECT_THAT(Message(readable), HasSubstr("open the store again"));
    } else {
      EXPECT_THAT(ledger->Check(store->get(), Expect::kNothingLost), IsEmpty());
    }
    if (!writers.errors().empty() && !failed_while_opening) CheckStopped(store->get());
    (*store)->Close().IgnoreError();
  }

  static absl::Status ScanAll(Store* store) {
    absl::Status status;
    for (const std::string& table : CrashTables()) {
      status.Update(store->Scan({.table = table, .selectors = {{.family = Family::kData}}}).status());
    }
    return status;
  }

  // A failed write stops the store until it is opened again, and the error says this.
  void CheckStopped(Store* store) {
    const RowMutation probe{
        "alpha", "probe", {}, {Mutation::Erase(Family::kData, "x", TimestampRange::Exactly(Timestamp(1)))}};
    const absl::StatusOr<MutateResult> during = store->Mutate({probe})[0];
    EXPECT_THAT(during, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(Message(during.status()), HasSubstr(Dir()));
    EXPECT_THAT(Message(during.status()), HasSubstr("open the store again"));
  }

  int rounds_with_rows_closed_ = 0;
};

TEST_P(FaultSweepTest, NothingIsLostWhicheverOperationFails) {
  const RocksOptions options = Options(GetParam().durability, kSmallBuffer);
  CrashLedger ledger({.seed = CrashSeed(), .writers = 2, .value_bytes = 4000});
  CreateStore(options);
  if (HasFatalFailure()) return;
  const uint64_t stride = CrashCycles("PERCOLATOR_FAULT_STRIDE", Amount(15, 30));
  uint64_t rounds = 0;
  uint64_t hit = 0;
  // Ends after several consecutive rounds without the fault, when it must be past the last operation.
  for (uint64_t nth = Between(1, stride), missed = 0; missed < 3; nth += stride, ++rounds) {
    ASSERT_LT(nth, 5000u);
    SCOPED_TRACE(StrCat("operation ", nth, " fails"));
    fs_->Inject({.kind = GetParam().kind, .nth = nth, .persistent = GetParam().persistent});
    Round(options, &ledger);
    if (HasFailure()) return;
    missed = fs_->Failed() > 0 ? 0 : missed + 1;
    hit += fs_->Failed() > 0 ? 1 : 0;
    fs_->Heal();
    if (GetParam().durability == Durability::kSync && rounds % 2 == 0) LosePower(static_cast<Loss>(rounds / 2 % 3));
    OpenAndVerify(options, &ledger, Expect::kNothingLost);
    if (HasFailure()) return;
  }
  std::printf("%llu rounds, %llu with the fault, %d left rows closed, %llu mutations acknowledged and verified\n",
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(hit), rounds_with_rows_closed_,
              static_cast<unsigned long long>(ledger.verified()));
  EXPECT_GE(hit * stride, 15u) << "too few operations failed to show anything";
  EXPECT_GE(ledger.acknowledged(), 10 * rounds) << "too few writes to show anything";
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FaultSweepTest,
    ::testing::Values(SweepCase{"FullDiskOnce", Fault::Kind::kNoSpace, false, Durability::kSync},
                      SweepCase{"FullDisk", Fault::Kind::kNoSpace, true, Durability::kSync},
                      SweepCase{"FullDiskWithoutSync", Fault::Kind::kNoSpace, true, Durability::kNoSync},
                      SweepCase{"WriteErrorOnce", Fault::Kind::kWriteError, false, Durability::kSync},
                      SweepCase{"WriteError", Fault::Kind::kWriteError, true, Durability::kSync},
                      SweepCase{"WriteErrorOnceWithoutSync", Fault::Kind::kWriteError, false, Durability::kNoSync},
                      SweepCase{"SyncErrorOnce", Fault::Kind::kSyncError, false, Durability::kSync},
                      SweepCase{"SyncError", Fault::Kind::kSyncError, true, Durability::kSync},
                      SweepCase{"SyncErrorWithoutSync", Fault::Kind::kSyncError, true, Durability::kNoSync}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_F(FaultTest, FullDiskStopsWritingButNotReadingUntilTheStoreIsOpenedAgain) {
  const RocksOptions options = Options(Durability::kSync, kLargeBuffer);
  CreateStore(options);
  const auto set = [](uint64_t timestamp) {
    return RowMutation{"alpha", "row", {}, {Mutation::Set(Family::kData, "c", Timestamp(timestamp), "value")}};
  };
  const std::vector<RowRead> read{{"alpha", "row", {{.family = Family::kData}}}};
  {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT((*store)->Mutate({set(1)})[0], IsOk());
    fs_->Inject({.kind = Fault::Kind::kNoSpace, .persistent = true});
    EXPECT_THAT((*store)->Mutate({set(2)})[0], StatusIs(absl::StatusCode::kResourceExhausted));
    fs_->Heal();
    EXPECT_THAT((*store)->Mutate({set(3)})[0], StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ((*store)->Read(read)->front().cells.size(), 1u);
    EXPECT_THAT((*store)->Close(), IsOk());
  }
  absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
  ASSERT_THAT(store, IsOk());
  ASSERT_THAT((*store)->Mutate({set(4)})[0], IsOk());
  const std::vector<Cell> cells = (*store)->Read(read)->front().cells;
  ASSERT_GE(cells.size(), 2u);
  EXPECT_EQ(cells.front().timestamp, Timestamp(4));
  EXPECT_EQ(cells.back().timestamp, Timestamp(1));
}

// RocksDB records a new log in its MANIFEST after it has put the writes of a group into memory. If that fails, the
// writers get an error, but their rows may exist: then with all their cells, in every read.
TEST_F(FaultTest, RowOfAFailedWriteIsReadWholeOrNotAtAll) {
  int failed = 0;
  for (int trial = 0; trial < 10; ++trial) {
    const std::string dir = StrCat(dir_.path(), "/trial-", trial);
    absl::StatusOr<std::unique_ptr<Store>> store =
        OpenRocksStoreWithEnv(dir, Options(Durability::kSync, 8 * kSmallBuffer), env_.get());
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT((*store)->CreateTable({"t", ""}), IsOk());
    fs_->Inject({.kind = Fault::Kind::kWriteError, .persistent = true, .files = FaultFs::FileKind::kManifest});
    std::vector<RowMutation> lost(5);
    std::atomic<bool> stop = false;
    const auto write = [&](int writer, int more_cells) {
      for (uint64_t i = 0; !stop; ++i) {
        const std::vector<Mutation> cells = {Mutation::Set(Family::kData, "c", Timestamp(i), ""),
                                             Mutation::Set(Family::kLock, "c", Timestamp(i), "")};
        RowMutation mutation{"t", StrCat(writer, "-", i), {}, cells};
        for (int n = 0; n < more_cells; ++n) {
          mutation.mutations.push_back(Mutation::Set(Family::kData, StrCat(n), Timestamp(i), ""));
        }
        if ((*store)->Mutate({mutation})[0].ok()) continue;
        lost[writer] = mutation;
        stop = true;
      }
    };
    std::vector<std::thread> threads;
    for (int writer = 0; writer < 5; ++writer) threads.emplace_back(write, writer, writer < 2 ? 0 : 1500);
    for (std::thread& thread : threads) thread.join();
    for (const RowMutation& mutation : lost) {
      if (mutation.row.empty()) continue;
      ++failed;
      const auto by_name = (*store)->Read({{"t", mutation.row, {{Family::kData, "c"}, {Family::kLock, "c"}}}});
      const auto by_family = (*store)->Read({{"t", mutation.row, {{Family::kData, "c"}, {Family::kLock}}}});
      ASSERT_THAT(by_name, IsOk());
      ASSERT_THAT(by_family, IsOk());
      EXPECT_THAT(by_name->front().cells.size(), AnyOf(0u, 2u));
      EXPECT_EQ(by_name->front(), by_family->front());
    }
    (*store)->Close().IgnoreError();
    fs_->Heal();
  }
  EXPECT_GE(failed, 10);
}

// ---- The reserve

class ReserveTest : public FaultTest {
 protected:
  static constexpr uint64_t kReserve = 1 << 20;

  void SetUp() override {
    RocksOptions options = Options(Durability::kNoSync, kLargeBuffer);
    options.reserve_bytes = kReserve;
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
    ASSERT_THAT(Set("a"), IsOk());
  }

  absl::Status Set(const std::string& row) {
    return store_->Mutate({{"t", row, {}, {Mutation::Set(Family::kLock, "c", Timestamp(1), "value")}}})[0].status();
  }
  absl::Status SetTogether(const std::string& row) {
    const Mutation set = Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), "value");
    return store_->MutateTogether({oracle_.GetTimestamp().value(), {{"t", row, {}, {set}}}}, &oracle_).status();
  }
  bool Exists(const std::string& row) {
    return !store_->Read({{"t", row, {{.family = Family::kLock}, {.family = Family::kWrite}}}})->front().cells.empty();
  }
  // Writes until the store has checked the free space.
  void WriteUntilRefused() {
    absl::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) status = Set("b");
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(Message(status), HasSubstr("make space"));
  }

  TestOracle oracle_{1001};
  std::unique_ptr<Store> store_;
};

TEST_F(ReserveTest, WritesThatOnlyAddAreRefusedUntilThereIsSpaceAgain) {
  fs_->SetFreeSpace(kReserve - 1);
  WriteUntilRefused();
  EXPECT_THAT(Set("new"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(SetTogether("new"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(store_->CreateTable({"another", ""}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(Exists("new"));
  EXPECT_TRUE(Exists("a"));
  EXPECT_THAT(store_->Scan({.table = "t", .rows = RowRange::All(), .selectors = {{.family = Family::kWrite}}}), IsOk());
  fs_->SetFreeSpace(kReserve);
  EXPECT_THAT(Set("new"), IsOk());
  EXPECT_THAT(SetTogether("new"), IsOk());
  EXPECT_THAT(store_->Close(), IsOk());
}

// A flush of the data in memory may need more than the reserve, and would fill the disk.
TEST_F(ReserveTest, DataInMemoryIsFlushedWhileThereIsSpace) {
  fs_->SetFreeSpace(4 * kReserve);
  const std::string value(100 << 10, 'v');
  const auto set = [&](int row) {
    const Mutation mutation = Mutation::Set(Family::kData, "c", Timestamp(1), value);
    return store_->Mutate({{"t", StrCat("row", row), {}, {mutation}}})[0].status();
  };
  int refused = -1;
  for (int i = 0; i < 200 && refused < 0; ++i) {
    const absl::Status status = set(i);
    if (status.ok()) continue;
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    refused = i;
  }
  ASSERT_GE(refused, 0) << "more is in memory than there is space for";
  // The flush ends after a while, and then there is space again.
  absl::Status again = set(refused);
  for (int looks = 0; looks < 6000 && absl::IsResourceExhausted(again); ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    again = set(refused);
  }
  EXPECT_THAT(again, IsOk());
  EXPECT_THAT(store_->Close(), IsOk());
}

TEST_F(ReserveTest, CommitsThatHaveBegunAreFinished) {
  fs_->SetFreeSpace(0);
  WriteUntilRefused();
  const RowMutation commit{"t",
                           "a",
                           {Condition::Quantifier::kAll, {{Family::kLock, "c", TimestampRange::Exactly(Timestamp(1))}}},
                           {Mutation::Set(Family::kWrite, "c", Timestamp(2), "record"),
                            Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(Timestamp(1)))}};
  EXPECT_THAT(store_->Mutate({commit})[0], IsOkAndHolds(MutateResult::kApplied));
  EXPECT_THAT(store_->RaiseSafePoint(Timestamp(3)), IsOk());
}

// ---- Joint mutations that fail

class JointFaultTest : public FaultTest {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
    ASSERT_THAT(Together({"a", "b", "c", "d"}, "old", &oracle_), IsOk());
  }

  absl::StatusOr<JointResult> Together(const std::vector<std::string>& rows, const std::string& value, Oracle* oracle) {
    JointMutation mutation{oracle_.GetTimestamp().value(), {}};
    for (const std::string& row : rows) {
      mutation.rows.push_back({"t", row, {}, {Mutation::Set(Family::kWrite, "c", JointMutation::AtCommit(), value)}});
    }
    return store_->MutateTogether(mutation, oracle);
  }
  // The newest value of the row, or the error.
  absl::StatusOr<std::string> Read(const std::string& row, bool whole_family = false) {
    Selector selector{Family::kWrite, "c", {}, 1};
    if (whole_family) selector.column.reset();
    const absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", row, {selector}}});
    if (!rows.ok()) return rows.status();
    return rows->front().cells.empty() ? "" : rows->front().cells.front().value;
  }
  absl::Status Scan(RowRange rows) {
    return store_->Scan({.table = "t", .rows = std::move(rows), .selectors = {{.family = Family::kWrite}}}).status();
  }
  void FailTheLog(Fault::Kind kind) {
    fs_->Inject({.kind = kind, .persistent = true, .files = FaultFs::FileKind::kWal});
  }

  // Expects the state of a store after a joint mutation of rows a and b has failed.
  void ExpectOnlyAAndBClosed() {
    for (const std::string row : {"a", "b"}) {
      for (const bool whole_family : {false, true}) {
        const absl::StatusOr<std::string> value = Read(row, whole_family);
        EXPECT_THAT(value, StatusIs(absl::StatusCode::kFailedPrecondition));
        EXPECT_THAT(Message(value.status()), HasSubstr("open the store again"));
      }
    }
    EXPECT_EQ(*Read("c"), "old");
    EXPECT_EQ(*Read("d", true), "old");
    EXPECT_THAT(Scan(RowRange::All()), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(Scan(RowRange::Single("b")), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(Scan(RowRange::All().After("b")), IsOk());
  }
  void ReopenAndExpectAllOrNothing() {
    store_->Close().IgnoreError();
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    EXPECT_THAT(*Read("a"), AnyOf("old", "new"));
    EXPECT_EQ(*Read("b"), *Read("a"));
    EXPECT_EQ(*Read("c"), "old");
    EXPECT_THAT(Together({"a", "b"}, "newer", &oracle_), IsOk());
    EXPECT_EQ(*Read("a"), "newer");
    EXPECT_THAT(Scan(RowRange::All()), IsOk());
  }

  const RocksOptions options_ = Options(Durability::kSync, kLargeBuffer);
  TestOracle oracle_{1001};
  std::unique_ptr<Store> store_;
};

TEST_F(JointFaultTest, RowsStayClosedUntilTheStoreIsOpenedAgain) {
  for (const Fault::Kind kind : {Fault::Kind::kWriteError, Fault::Kind::kSyncError, Fault::Kind::kNoSpace}) {
    FailTheLog(kind);
    const absl::StatusOr<JointResult> failed = Together({"a", "b"}, "new", &oracle_);
    EXPECT_THAT(failed.status().code(), AnyOf(absl::StatusCode::kDataLoss, absl::StatusCode::kResourceExhausted));
    fs_->Heal();
    ExpectOnlyAAndBClosed();
    EXPECT_THAT(Together({"c"}, "new", &oracle_), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(store_->DropTable("t"), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(store_->RaiseSafePoint(Timestamp(1)), StatusIs(absl::StatusCode::kFailedPrecondition));
    ExpectOnlyAAndBClosed();
    ReopenAndExpectAllOrNothing();
    if (HasFailure()) return;
    ASSERT_THAT(Together({"a", "b", "c", "d"}, "old", &oracle_), IsOk());
  }
}

// While the timestamp is drawn, other calls arrive: reads of the rows, scans, and changes of other rows in one step.
TEST_F(JointFaultTest, CallsThatWaitGetTheError) {
  HeldOracle slow(&oracle_);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { EXPECT_THAT(Together({"a", "b"}, "new", &slow), StatusIs(absl::StatusCode::kDataLoss)); });
  slow.WaitUntilAsked();
  threads.emplace_back([&] { EXPECT_THAT(Read("a"), StatusIs(absl::StatusCode::kFailedPrecondition)); });
  threads.emplace_back([&] { EXPECT_THAT(Read("b", true), StatusIs(absl::StatusCode::kFailedPrecondition)); });
  threads.emplace_back([&] { EXPECT_THAT(Scan(RowRange::All()), StatusIs(absl::StatusCode::kFailedPrecondition)); });
  threads.emplace_back(
      [&] { EXPECT_THAT(Together({"c"}, "new", &slow), StatusIs(absl::StatusCode::kFailedPrecondition)); });
  std::this_thread::sleep_for(milliseconds(50));
  FailTheLog(Fault::Kind::kWriteError);
  slow.Answer();
  for (std::thread& thread : threads) thread.join();
  fs_->Heal();
  ExpectOnlyAAndBClosed();
  ReopenAndExpectAllOrNothing();
}

// Families that are full when a write begins are switched to a new log together. These tests fail its creation.
class NewLogTest : public FaultTest {
 protected:
  // Leaves several families with full buffers, and then makes the next log fail.
  void FillAndInject(Fault::Kind kind) {
    CreateStore(options_);
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    RowMutation large{"alpha", "row", {}, {}};
    for (int family = 0; family < kFamilyCount; ++family) {
      large.mutations.push_back(Mutation::Set(static_cast<Family>(family), "c", Timestamp(1),
                                              std::string(kSmallBuffer + kSmallBuffer / 4, 'x')));
    }
    ASSERT_THAT(store_->Mutate({large})[0], IsOk());
    fs_->Inject({.kind = kind, .persistent = true, .files = FaultFs::FileKind::kWal});
  }
  absl::StatusOr<MutateResult> Write() {
    return store_->Mutate({{"alpha", "row", {}, {Mutation::Set(Family::kData, "c", Timestamp(2), "y")}}})[0];
  }

  const RocksOptions options_ = Options(Durability::kSync, kSmallBuffer);
  std::unique_ptr<Store> store_;
};

TEST_F(NewLogTest, ErrorStopsTheStoreAndItCanBeClosed) {
  FillAndInject(Fault::Kind::kWriteError);
  if (HasFatalFailure()) return;
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kDataLoss));
  fs_->Heal();
  const absl::StatusOr<MutateResult> later = Write();
  EXPECT_THAT(later, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Message(later.status()), HasSubstr("open the store again"));
  store_->Close().IgnoreError();
  store_.reset();
  EXPECT_THAT(Open(options_), IsOk());
}

TEST_F(NewLogTest, FullDiskStopsTheStoreAndItCanBeClosed) {
  FillAndInject(Fault::Kind::kNoSpace);
  if (HasFatalFailure()) return;
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kResourceExhausted));
  fs_->Heal();
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kFailedPrecondition));
  store_->Close().IgnoreError();
  store_.reset();
  EXPECT_THAT(Open(options_), IsOk());
}

// ---- Errors of reading

class ReadErrorTest : public FaultTest {
 protected:
  ReadErrorTest() : ledger_({.seed = CrashSeed(), .writers = 2}) {}

  // A store whose rows are in table files.
  void Fill() {
    CreateStore(options_);
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
    ASSERT_THAT(store, IsOk());
    Writers writers(store->get(), &ledger_, 0, /*max_steps=*/300);
    writers.Wait();
    writers.Stop();
    ASSERT_THAT(writers.errors(), IsEmpty());
    ASSERT_THAT((*store)->Close(), IsOk());
    store->reset();
    OpenAndVerify(options_, &ledger_, Expect::kNothingLost);
  }

  std::vector<RowRead> EveryRow() const {
    std::vector<RowRead> reads;
    for (uint32_t writer = 0; writer < ledger_.plan().writers; ++writer) {
      for (uint64_t row = 0; row < ledger_.plan().rows_per_writer; ++row) {
        RowRead read{CrashTables()[row % 2], CrashRowKey(writer, row), {}};
        for (const Family family : {Family::kData, Family::kWrite}) {
          for (const char* column : {"c0", "c1", "c2", "c3"}) read.selectors.push_back({family, column, {}, 0});
        }
        reads.push_back(std::move(read));
      }
    }
    return reads;
  }

  const RocksOptions options_ = Options(Durability::kSync, kSmallBuffer);
  CrashLedger ledger_;
};

TEST_F(ReadErrorTest, AReadErrorIsNeverAnAbsentCell) {
  Fill();
  if (HasFatalFailure()) return;
  std::vector<Row> expected;
  {
    absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
    ASSERT_THAT(store, IsOk());
    expected = (*store)->Read(EveryRow()).value();
  }
  absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);  // its cache is cold
  ASSERT_THAT(store, IsOk());
  fs_->Inject({.kind = Fault::Kind::kReadError, .persistent = true, .files = FaultFs::FileKind::kTable});
  const std::vector<RowRead> reads = EveryRow();
  int failed = 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    const absl::StatusOr<std::vector<Row>> rows = (*store)->Read({reads[i]});
    if (rows.ok()) {
      EXPECT_EQ(rows->front(), expected[i]);
    } else {
      EXPECT_THAT(rows, StatusIs(absl::StatusCode::kDataLoss));
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_THAT((*store)->Scan({.table = "alpha", .selectors = {{.family = Family::kData}}}),
              StatusIs(absl::StatusCode::kDataLoss));
  fs_->Heal();
  EXPECT_EQ((*store)->Read(reads).value(), expected);
  EXPECT_THAT(ledger_.Check(store->get(), Expect::kNothingLost), IsEmpty());
}

// Conditions and erases of ranges also read.
TEST_F(ReadErrorTest, AReadErrorFailsMutationsThatReadAndChangesNothing) {
  Fill();
  if (HasFatalFailure()) return;
  absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
  ASSERT_THAT(store, IsOk());
  fs_->Inject({.kind = Fault::Kind::kReadError, .persistent = true, .files = FaultFs::FileKind::kTable});
  Writers writers(store->get(), &ledger_, /*steps_after_error=*/50, /*max_steps=*/100);
  writers.Wait();
  writers.Stop();
  EXPECT_THAT(writers.errors(), ::testing::Not(IsEmpty()));
  for (const absl::Status& error : writers.errors()) EXPECT_TRUE(IsClear(error)) << error;
  fs_->Heal();
  EXPECT_THAT(ledger_.Check(store->get(), Expect::kNothingLost), IsEmpty());
  store->reset();
  OpenAndVerify(options_, &ledger_, Expect::kNothingLost);
}

TEST_F(ReadErrorTest, AReadErrorFailsTheOpenOrHasNoEffect) {
  Fill();
  if (HasFatalFailure()) return;
  uint64_t failed = 0;
  const uint64_t stride = CrashCycles("PERCOLATOR_FAULT_STRIDE", 4);
  for (uint64_t nth = Between(1, stride);; nth += stride) {
    ASSERT_LT(nth, 5000u);
    SCOPED_TRACE(StrCat("read ", nth, " fails"));
    {
      // Data in the log, for the open to read.
      absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
      ASSERT_THAT(store, IsOk());
      Writers writers(store->get(), &ledger_, 0, /*max_steps=*/3);
      writers.Wait();
      writers.Stop();
      // Without a clean close, which would leave the log empty.
      fs_->CutPower();
      store->reset();
      fs_->PowerOn();
    }
    fs_->Inject({.kind = Fault::Kind::kReadError, .nth = nth});
    {
      absl::StatusOr<std::unique_ptr<Store>> store = Open(options_);
      if (fs_->Failed() == 0) break;
      if (store.ok()) {
        EXPECT_THAT(ledger_.Check(store->get(), Expect::kNothingLost), IsEmpty());
      } else {
        EXPECT_TRUE(IsClear(store.status())) << store.status();
        ++failed;
      }
    }
    fs_->Heal();
    OpenAndVerify(options_, &ledger_, Expect::kNothingLost);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 0u);
}

// ---- Folders that cannot be opened

class OpenTest : public FaultTest {
 protected:
  static void ExpectRefused(const std::string& dir, const std::string& reason) {
    const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir);
    EXPECT_THAT(store, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(Message(store.status()), HasSubstr(dir));
    EXPECT_THAT(Message(store.status()), HasSubstr(reason));
  }
};

TEST_F(OpenTest, SecondOpenInTheSameProcessIsRefused) {
  absl::StatusOr<std::unique_ptr<Store>> first = OpenRocksStore(Dir());
  ASSERT_THAT(first, IsOk());
  ExpectRefused(Dir(), "open already");
  // The first store still works.
  EXPECT_THAT(CreateCrashTables(first->get()), IsOk());
  ASSERT_THAT((*first)->Close(), IsOk());
  EXPECT_THAT(OpenRocksStore(Dir()), IsOk());
}

TEST_F(OpenTest, NewerFormatIsRefusedAndLeftAlone) {
  CreateStore({});
  const std::string path = Dir() + "/PERCOLATOR";
  std::ifstream in(path);
  const std::string before{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ASSERT_EQ(before, "percolator store format 1\n");
  std::ofstream(path, std::ios::trunc) << "percolator store format 2\n";
  ExpectRefused(Dir(), "format 2");
  std::ofstream(path, std::ios::trunc) << before;
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->ListTables()->size(), CrashTables().size());
}

TEST_F(OpenTest, DamagedFormatFileIsRefused) {
  CreateStore({});
  std::ofstream(Dir() + "/PERCOLATOR", std::ios::trunc) << "percolator st";
  ExpectRefused(Dir(), "format");
}

TEST_F(OpenTest, PipeInPlaceOfTheFormatFileIsRefused) {
  CreateStore({});
  std::filesystem::remove(Dir() + "/PERCOLATOR");
  ASSERT_EQ(mkfifo((Dir() + "/PERCOLATOR").c_str(), 0600), 0);
  ExpectRefused(Dir(), "it is a pipe");
}

TEST_F(OpenTest, PipeInPlaceOfAnotherFileIsRefused) {
  CreateStore({});
  for (const std::string name : {"/CLEAN", "/rocksdb/CURRENT"}) {
    SCOPED_TRACE(name);
    const std::string path = Dir() + name;
    std::filesystem::rename(path, Dir() + ".kept");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    ExpectRefused(Dir(), "is a pipe");
    std::filesystem::rename(Dir() + ".kept", path);
  }
  EXPECT_THAT(OpenRocksStore(Dir()), IsOk());
}

TEST_F(OpenTest, DanglingLinkInPlaceOfTheDatabaseIsRefused) {
  CreateStore({});
  std::filesystem::remove_all(Dir() + "/rocksdb");
  std::filesystem::create_symlink("rocksdb", Dir() + "/rocksdb");
  ExpectRefused(Dir(), "lost its folder rocksdb");
}

TEST_F(OpenTest, FolderWithForeignFilesIsRefusedAndLeftAlone) {
  std::filesystem::create_directory(Dir());
  std::ofstream(Dir() + "/letter.txt") << "Dear";
  ExpectRefused(Dir(), "is not a Percolator store");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(Dir())) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(OpenTest, EmptyFolderBecomesAStore) {
  std::filesystem::create_directory(Dir());
  EXPECT_THAT(OpenRocksStore(Dir()), IsOk());
}

TEST_F(OpenTest, FileInPlaceOfAFolderIsRefused) {
  std::ofstream(Dir()) << "file";
  ExpectRefused(Dir(), "");
}

// Fails even for the superuser, who can write to read-only folders.
TEST_F(OpenTest, FolderThatCannotBeCreatedIsRefused) {
  std::ofstream(Dir()) << "file";
  ExpectRefused(Dir() + "/below", "cannot create");
}

}  // namespace
}  // namespace percolator
