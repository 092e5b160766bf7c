// SPDX-License-Identifier: Apache-2.0

// A test that cannot fail proves nothing: the rules of raw cells find each violation that they name.

#include "tests/harness/raw_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/base/coding.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class RawCellsTest : public StepsTest {
 protected:
  void PutRaw(const std::string& row, Family family, const std::string& column, uint64_t ts, const std::string& value) {
    ASSERT_THAT(world_.store->Mutate({{kTable, row, {}, {Mutation::Set(family, column, Timestamp(ts), value)}}})[0],
                IsOk());
  }
  void PutRecord(const std::string& row, uint64_t ts, const WriteRecord& record) {
    PutRaw(row, Family::kWrite, record.kind == WriteKind::kRollback ? RollbackColumn() : kColumn, ts,
           EncodeWriteRecord(record));
  }
  static WriteRecord PutFrom(uint64_t start) {
    return {.kind = WriteKind::kPut, .start_ts = Timestamp(start), .value = "v"};
  }
  void PutLock(const std::string& row, uint64_t ts, const Lock& lock = {.kind = WriteKind::kDelete}) {
    PutRaw(row, Family::kLock, kColumn, ts, EncodeLock(lock));
  }
  void PutAck(uint64_t ts, uint64_t seen) {
    WriteRecord ack = PutFrom(ts - 1);
    ack.value->clear();
    AppendFixed64(&*ack.value, seen);
    PutRaw("Bob", Family::kWrite, AckColumn(kColumn, "pay"), ts, EncodeWriteRecord(ack));
  }
  std::vector<std::string> Findings() { return Audit(world_.store.get()); }
};

TEST_F(RawCellsTest, CellsOfTransactionsBreakNoRule) {
  MustCommit(Begin(1, {Put("Bob", "1"), Put("Joe", std::string(300, 'j')), Del("Ann")}), 2);
  MustCommit(Begin(3, {Put("Bob", "1"), Put("Joe", std::string(300, 'j')), Relied("Ann", 2)}), 4);
  const Writes rolled_back = Begin(5, {Put("Bob", "1"), Put("Joe", std::string(300, 'j'))});
  MustPrewrite(rolled_back);
  RollBack(rolled_back);
  const Writes stranded = Begin(6, {Put("Bob", "1"), Put("Joe", std::string(300, 'j'))});
  MustPrewrite(stranded);
  EXPECT_THAT(Findings(), IsEmpty());
  MustCommitPrimary(stranded, 7);
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RawCellsTest, FindsTwoLocks) {
  PutLock("Bob", 1);
  PutLock("Bob", 2);
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T4")));
}

TEST_F(RawCellsTest, FindsALockBesideItsRecord) {
  PutLock("Bob", 1);
  PutRecord("Bob", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T4")));
}

TEST_F(RawCellsTest, FindsTwoRecordsOfOneStart) {
  PutRecord("Bob", 2, PutFrom(1));
  PutRecord("Bob", 3, PutFrom(1));
  EXPECT_THAT(Findings(), ::testing::Contains(StartsWith("T4")));
}

TEST_F(RawCellsTest, FindsTwoCommitTimestampsOfOneTransaction) {
  PutRecord("Bob", 2, PutFrom(1));
  PutRecord("Joe", 3, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T2")));
}

TEST_F(RawCellsTest, FindsMissingData) {
  PutRecord("Bob", 2, {.kind = WriteKind::kPut, .start_ts = Timestamp(1)});
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T2")));
}

TEST_F(RawCellsTest, FindsMissingDataOfALock) {
  PutLock("Bob", 1, {.kind = WriteKind::kPut});
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T2")));
}

TEST_F(RawCellsTest, FindsDataWithoutALockOrRecord) {
  PutRaw("Bob", Family::kData, kColumn, 1, "v");
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("G5")));
}

TEST_F(RawCellsTest, FindsOverlappingTransactions) {
  PutRecord("Bob", 5, PutFrom(1));
  PutRecord("Bob", 6, PutFrom(4));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T5")));
}

TEST_F(RawCellsTest, FindsACommitBeforeItsStart) {
  PutRecord("Bob", 2, PutFrom(2));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T6")));
}

TEST_F(RawCellsTest, FindsATransactionThatWasRolledBackAndCommitted) {
  PutRecord("Bob", 1, {.kind = WriteKind::kRollback, .start_ts = Timestamp(1)});
  PutRecord("Joe", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T1")));
  PutRecord("Bob", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ::testing::Contains(StartsWith("T3")));
}

TEST_F(RawCellsTest, FindsALockBesideItsMarker) {
  PutRecord("Bob", 1, {.kind = WriteKind::kRollback, .start_ts = Timestamp(1)});
  PutLock("Bob", 1);
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T3")));
}

TEST_F(RawCellsTest, FindsAMarkWithoutItsLock) {
  PutRaw("Bob", Family::kNotify, PendingColumn(kColumn), 1, EncodeMark({}));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("N1")));
}

TEST_F(RawCellsTest, FindsALockWithoutItsMark) {
  PutLock("Bob", 1, {.kind = WriteKind::kDelete, .observed = true});
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("N1")));
}

TEST_F(RawCellsTest, FindsAChangeWithoutAMark) {
  const CellName cell{kTable, "Bob", kColumn};
  PutRecord("Bob", 2, PutFrom(1));
  EXPECT_THAT(LostChanges(*ReadRawCells(world_.store.get()), "pay", cell), ElementsAre(StartsWith("N1")));
  PutRaw("Bob", Family::kNotify, kColumn, 2, EncodeMark({}));
  EXPECT_THAT(LostChanges(*ReadRawCells(world_.store.get()), "pay", cell), IsEmpty());
}

TEST_F(RawCellsTest, FindsARunThatSawNothingNew) {
  PutRecord("Bob", 2, PutFrom(1));
  PutAck(5, 3);
  EXPECT_THAT(Findings(), IsEmpty());
  PutAck(8, 6);
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("N2")));
}

TEST_F(RawCellsTest, FindsAMalformedRecord) {
  PutRaw("Bob", Family::kWrite, kColumn, 1, "garbage");
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("format")));
}

}  // namespace
}  // namespace percolator
