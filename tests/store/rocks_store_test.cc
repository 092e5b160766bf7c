// SPDX-License-Identifier: Apache-2.0

// Properties of the store on RocksDB only: its folder, formats, and state that is rebuilt on open.

#include "src/store/rocks/rocks_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "percolator/spi/store.h"
#include "rocksdb/db.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RocksStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    ASSERT_THAT(store_->CreateTable({"t", "schema"}), IsOk());
  }

  void Open() {
    store_.reset();
    RocksOptions options;
    options.durability = Durability::kNoSync;
    absl::StatusOr<std::unique_ptr<RocksStore>> store = RocksStore::Open(dir_.path(), options, rocksdb::Env::Default());
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  MutateResult Mutate(Condition condition, std::vector<Mutation> mutations) {
    const auto results = store_->Mutate({{"t", "r", std::move(condition), std::move(mutations)}});
    EXPECT_THAT(results[0], IsOk());
    return results[0].value_or(MutateResult::kConditionFailed);
  }

  static Condition None(Family family, TimestampRange range) {
    return {Condition::Quantifier::kNone, {{family, "c", range}}};
  }

  std::string ReadText(Family family) {
    const auto rows = store_->Read({{"t", "r", {{family, "c", TimestampRange::All(), 1}}}});
    EXPECT_THAT(rows, IsOk());
    return ToText(rows->at(0));
  }

  std::string CatalogValue(const std::string& key) {
    std::string value;
    EXPECT_TRUE(store_->db()->Get(rocksdb::ReadOptions(), key, &value).ok()) << key;
    return absl::BytesToHexString(value);
  }

  void FlushAll() {
    for (int i = 0; i < kFamilyCount; ++i) {
      ASSERT_TRUE(store_->db()->Flush(rocksdb::FlushOptions(), store_->family(static_cast<Family>(i))).ok());
    }
  }

  TempDir dir_;
  std::unique_ptr<RocksStore> store_;
};

TEST_F(RocksStoreTest, LocksAreLoadedOnOpen) {
  Mutate({}, {Mutation::Set(Family::kLock, "c", Timestamp(5), "mine")});
  Open();
  EXPECT_EQ(Mutate(None(Family::kLock, TimestampRange::All()), {}), MutateResult::kConditionFailed);
  EXPECT_EQ(ReadText(Family::kLock), "r{lock:c@5=mine}");
}

TEST_F(RocksStoreTest, LocksOfADroppedTableDoNotComeBackOnOpen) {
  Mutate({}, {Mutation::Set(Family::kLock, "c", Timestamp(5), "mine")});
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  Open();
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  EXPECT_EQ(Mutate(None(Family::kLock, TimestampRange::All()), {}), MutateResult::kApplied);
}

// The sketch of newest timestamps is rebuilt on open: from the log, from files, and from both.
TEST_F(RocksStoreTest, NewerWritesFromBeforeOpeningAreFoundByConditions) {
  Mutate({}, {Mutation::Set(Family::kWrite, "c", Timestamp(10), "")});
  Open();
  EXPECT_EQ(Mutate(None(Family::kWrite, TimestampRange::From(Timestamp(10))), {}), MutateResult::kConditionFailed);
  EXPECT_EQ(Mutate(None(Family::kWrite, TimestampRange::From(Timestamp(11))), {}), MutateResult::kApplied);
  FlushAll();
  Mutate({}, {Mutation::Set(Family::kWrite, "c", Timestamp(20), "")});
  Open();
  EXPECT_EQ(Mutate(None(Family::kWrite, TimestampRange::From(Timestamp(20))), {}), MutateResult::kConditionFailed);
  EXPECT_EQ(Mutate(None(Family::kWrite, TimestampRange::From(Timestamp(21))), {}), MutateResult::kApplied);
}

TEST_F(RocksStoreTest, TheNewestVersionIsReadAfterTheGuessAtItWasErased) {
  Mutate({}, {Mutation::Set(Family::kWrite, "c", Timestamp(10), "old")});
  Mutate({}, {Mutation::Set(Family::kWrite, "c", Timestamp(20), "new")});
  EXPECT_EQ(ReadText(Family::kWrite), "r{write:c@20=new}");
  Mutate({}, {Mutation::Erase(Family::kWrite, "c", TimestampRange::Exactly(Timestamp(20)))});
  EXPECT_EQ(ReadText(Family::kWrite), "r{write:c@10=old}");
}

TEST_F(RocksStoreTest, ReadsSeeWritesAfterAFlushReplacedTheirFiles) {
  for (uint64_t ts = 1; ts <= 20; ++ts) {
    Mutate({}, {Mutation::Set(Family::kData, "c", Timestamp(ts), std::to_string(ts))});
    EXPECT_EQ(ReadText(Family::kData), "r{data:c@" + std::to_string(ts) + "=" + std::to_string(ts) + "}");
    if (ts % 5 == 0) FlushAll();
  }
}

// Only the rows of a joint mutation are closed. (Two rows may share a latch, but not most of them.)
TEST_F(RocksStoreTest, WhileATimestampIsDrawnOtherRowsAreReadAndWritten) {
  TestOracle oracle(1001);
  HeldOracle slow(&oracle);
  const JointMutation mutation{Timestamp(1),
                               {{"t", "r", {}, {Mutation::Set(Family::kData, "c", JointMutation::AtCommit(), "new")}}}};
  std::thread writer([&] { EXPECT_THAT(store_->MutateTogether(mutation, &slow), IsOk()); });
  slow.WaitUntilAsked();
  std::atomic<int> came_through = 0;
  std::vector<std::thread> others;
  for (const std::string row : {"a", "b", "c"}) {
    others.emplace_back([&, row] {
      EXPECT_THAT(store_->Mutate({{"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), row)}}})[0], IsOk());
      const auto rows = store_->Read({{"t", row, {{Family::kData}}}});
      EXPECT_THAT(rows, IsOk());
      EXPECT_EQ(ToText(*rows), row + "{data:c@1=" + row + "}");
      ++came_through;
    });
  }
  for (int i = 0; i < 60'000 && came_through == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(came_through, 0);
  slow.Answer();
  writer.join();
  for (std::thread& other : others) other.join();
}

TEST_F(RocksStoreTest, JointMutationsOfAllSizesAreApplied) {
  TestOracle oracle(1001);
  for (const size_t bytes : {10, 3 << 20, 10}) {
    JointMutation mutation{oracle.GetTimestamp().value(), {}};
    for (const std::string row : {"r", "s"}) {
      mutation.rows.push_back({"t", row, {}, {Mutation::Erase(Family::kData, "c", TimestampRange::All())}});
      mutation.rows.back().mutations.push_back(
          Mutation::Set(Family::kData, "c", JointMutation::AtCommit(), std::string(bytes, 'x')));
    }
    ASSERT_THAT(store_->MutateTogether(mutation, &oracle), IsOk());
    const auto rows = store_->Read({{"t", "r", {{Family::kData}}}, {"t", "s", {{Family::kData}}}});
    ASSERT_THAT(rows, IsOk());
    for (const Row& row : *rows) {
      ASSERT_THAT(row.cells, SizeIs(1));
      EXPECT_EQ(row.cells[0].value.size(), bytes);
      EXPECT_EQ(row.cells[0].timestamp.Next(), oracle.next());
    }
  }
}

TEST_F(RocksStoreTest, SampleRowKeysDividesByFiles) {
  for (int file = 0; file < 4; ++file) {
    for (int i = 0; i < 10; ++i) {
      const std::string row = std::to_string(file) + "-" + std::to_string(i);
      ASSERT_THAT(store_->Mutate({{"t", row, {}, {Mutation::Set(Family::kData, "c", Timestamp(1), "v")}}})[0], IsOk());
    }
    if (file < 3) FlushAll();
  }
  const auto rows = store_->SampleRowKeys("t");
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(*rows, ElementsAre("0-0", "1-0", "2-0"));
}

// These bytes are on users' disks: see docs/format.md.
TEST_F(RocksStoreTest, GoldenCatalog) {
  EXPECT_EQ(CatalogValue("table/t"), "00000001" + absl::BytesToHexString("schema"));
  EXPECT_EQ(CatalogValue("next-table-id"), "00000002");
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  EXPECT_EQ(CatalogValue("table/t"), "00000002");
  EXPECT_EQ(CatalogValue("next-table-id"), "00000003");
}

TEST_F(RocksStoreTest, GoldenSafePoint) {
  ASSERT_THAT(store_->RaiseSafePoint(Timestamp(0x0102030405060708)), IsOk());
  EXPECT_EQ(CatalogValue("safe-point"), "0102030405060708");
}

TEST_F(RocksStoreTest, AMalformedSafePointIsRefused) {
  ASSERT_TRUE(store_->db()->Put(rocksdb::WriteOptions(), "safe-point", "1234567").ok());
  store_.reset();
  EXPECT_THAT(OpenRocksStore(dir_.path()), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(RocksStoreTest, GoldenFormatFile) {
  std::ifstream file(dir_.path() + "/PERCOLATOR");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "percolator store format 1\n");
}

TEST_F(RocksStoreTest, KeepsItsFolderWhenTheProcessChangesItsOwn) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  auto store = OpenRocksStore("relative/");
  std::filesystem::current_path(before);
  ASSERT_THAT(store, IsOk());
  ASSERT_THAT((*store)->CreateTable({"t", ""}), IsOk());
  ASSERT_THAT((*store)->Close(), IsOk());
  EXPECT_THAT(OpenRocksStore(dir_.path() + "/relative"), IsOk());
}

TEST_F(RocksStoreTest, AChildThatWasForkedDoesNotKeepTheLock) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  store_.reset();
  const absl::Status opened = OpenRocksStore(dir_.path()).status();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(opened, IsOk());
}

TEST_F(RocksStoreTest, AStoreThatLostItsDatabaseIsRefused) {
  store_.reset();
  std::filesystem::remove_all(dir_.path() + "/rocksdb");
  EXPECT_THAT(OpenRocksStore(dir_.path()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(RocksStoreTest, AStoreWhoseCreationWasInterruptedIsFinished) {
  const std::string dir = dir_.path() + "/new";
  std::filesystem::create_directories(dir + "/rocksdb");
  std::ofstream(dir + "/PERCOLATOR.tmp") << "percolator st";
  EXPECT_THAT(OpenRocksStore(dir), IsOk());
}

TEST_F(RocksStoreTest, LimitsThatRocksDbCannotMeetAreRefused) {
  RocksOptions options;
  options.limits.max_value_bytes = size_t{1} << 32;
  EXPECT_THAT(OpenRocksStore(dir_.path() + "/large", options), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(RocksStoreTest, TheLastTableIdIsNotUsed) {
  ASSERT_TRUE(store_->db()->Put(rocksdb::WriteOptions(), "next-table-id", "\xff\xff\xff\xff").ok());
  Open();
  EXPECT_THAT(store_->CreateTable({"u", ""}), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(RocksStoreTest, SelectedVersionsCountAsWork) {
  store_.reset();
  RocksOptions options;
  options.limits.max_scan_work = 10;
  const auto store = OpenRocksStore(dir_.path(), options);
  ASSERT_THAT(store, IsOk());
  std::vector<RowMutation> mutations;
  for (int i = 100; i < 200; ++i) {
    mutations.push_back({"t", std::to_string(i), {}, {Mutation::Set(Family::kData, "c", Timestamp(1), "v")}});
  }
  for (const auto& result : (*store)->Mutate(mutations)) ASSERT_THAT(result, IsOk());
  ScanRequest request;
  request.table = "t";
  request.selectors.push_back({Family::kData});
  const auto page = (*store)->Scan(request);
  ASSERT_THAT(page, IsOk());
  EXPECT_LE(page->rows.size(), 11u);
  EXPECT_TRUE(page->resume.has_value());
}

TEST_F(RocksStoreTest, TablesSurviveReopening) {
  Open();
  const auto tables = store_->ListTables();
  ASSERT_THAT(tables, IsOk());
  ASSERT_THAT(*tables, SizeIs(1));
  EXPECT_EQ(tables->at(0), (TableInfo{"t", "schema"}));
}

}  // namespace
}  // namespace percolator
