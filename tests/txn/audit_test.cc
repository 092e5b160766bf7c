// A test that can't fail proves nothing: the audit finds each thing that it says it finds.

#include "tests/txn/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/txn/columns.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class AuditTest : public StepsTest {
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
  std::vector<std::string> Findings() { return Audit(world_.store.get()); }
};

TEST_F(AuditTest, NothingIsWrongWithWhatTransactionsLeave) {
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

TEST_F(AuditTest, FindsTwoLocks) {
  PutRaw("Bob", Family::kLock, kColumn, 1, EncodeLock({.kind = WriteKind::kDelete}));
  PutRaw("Bob", Family::kLock, kColumn, 2, EncodeLock({.kind = WriteKind::kDelete}));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T4")));
}

TEST_F(AuditTest, FindsALockBesideItsRecord) {
  PutRaw("Bob", Family::kLock, kColumn, 1, EncodeLock({.kind = WriteKind::kDelete}));
  PutRecord("Bob", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T4")));
}

TEST_F(AuditTest, FindsTwoRecordsOfOneStart) {
  PutRecord("Bob", 2, PutFrom(1));
  PutRecord("Bob", 3, PutFrom(1));
  EXPECT_THAT(Findings(), ::testing::Contains(StartsWith("T4")));
}

TEST_F(AuditTest, FindsTwoCommitTimestampsOfOneTransaction) {
  PutRecord("Bob", 2, PutFrom(1));
  PutRecord("Joe", 3, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T2")));
}

TEST_F(AuditTest, FindsMissingData) {
  PutRecord("Bob", 2, {.kind = WriteKind::kPut, .start_ts = Timestamp(1)});
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T2")));
}

TEST_F(AuditTest, FindsDataOfNobody) {
  PutRaw("Bob", Family::kData, kColumn, 1, "v");
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("G5")));
}

TEST_F(AuditTest, FindsOverlappingTransactions) {
  PutRecord("Bob", 5, PutFrom(1));
  PutRecord("Bob", 6, PutFrom(4));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T5")));
}

TEST_F(AuditTest, FindsACommitBeforeItsStart) {
  PutRecord("Bob", 2, PutFrom(2));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T6")));
}

TEST_F(AuditTest, FindsWhatWasRolledBackAndCommitted) {
  PutRecord("Bob", 1, {.kind = WriteKind::kRollback, .start_ts = Timestamp(1)});
  PutRecord("Joe", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T1")));
  PutRecord("Bob", 2, PutFrom(1));
  EXPECT_THAT(Findings(), ::testing::Contains(StartsWith("T3")));
}

TEST_F(AuditTest, FindsALockBesideItsMarker) {
  PutRecord("Bob", 1, {.kind = WriteKind::kRollback, .start_ts = Timestamp(1)});
  PutRaw("Bob", Family::kLock, kColumn, 1, EncodeLock({.kind = WriteKind::kDelete}));
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("T3")));
}

TEST_F(AuditTest, FindsWhatIsNoRecord) {
  PutRaw("Bob", Family::kWrite, kColumn, 1, "garbage");
  EXPECT_THAT(Findings(), ElementsAre(StartsWith("format")));
}

}  // namespace
}  // namespace percolator
