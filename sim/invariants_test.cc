// SPDX-License-Identifier: Apache-2.0

// Each invariant is broken here by hand, one mutation at a time, and must be reported. A correct transaction must not
// be.

#include "sim/invariants.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/world.h"
#include "src/observe/ack.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"

namespace percolator::sim {
namespace {

Timestamp Ts(uint64_t value) { return Timestamp(value); }

// Cells are columns of one row; "b" is no transaction's primary.
class InvariantsTest : public ::testing::Test {
 protected:
  InvariantsTest() : client_(world_.NewClient()), invariants_(Options(), false, [] {}) {
    invariants_.OnTimestamps({}, Ts(1), 1000);
  }

  static ClusterOptions Options() {
    ClusterOptions options;
    options.lock_lease = Duration(10);
    options.gc_retention = Duration(50);
    return options;
  }

  using Mutations = std::vector<Mutation>;

  void Apply(const Mutations& mutations) {
    const RowMutation row{"t", "r", {}, mutations};
    invariants_.OnMutation({world_.now(), {&client_->process(), false}, row, {}, {}});
  }

  static CellName Named(const std::string& column) { return {"t", "r", column}; }
  static Lock LockOf(const std::string& column, const std::string& value = "v") {
    Lock lock;
    lock.value = value;
    if (column != "a") lock.primary = Named("a");
    return lock;
  }
  static Mutation SetLock(const std::string& column, uint64_t s) {
    return Mutation::Set(Family::kLock, column, Ts(s), EncodeLock(LockOf(column)));
  }
  static Mutation EraseLock(const std::string& column, uint64_t s) {
    return Mutation::Erase(Family::kLock, column, TimestampRange::Exactly(Ts(s)));
  }
  static Mutation SetRecord(const std::string& column, uint64_t s, uint64_t c, const std::string& value = "v") {
    return Mutation::Set(Family::kWrite, column, Ts(c),
                         EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Ts(s), .value = value}));
  }
  static Mutation EraseRecord(const std::string& column, uint64_t c) {
    return Mutation::Erase(Family::kWrite, column, TimestampRange::Exactly(Ts(c)));
  }
  static Mutation SetMarker(uint64_t s) {
    return Mutation::Set(Family::kWrite, RollbackColumn(), Ts(s),
                         EncodeWriteRecord({.kind = WriteKind::kRollback, .start_ts = Ts(s)}));
  }
  static Mutation EraseMarker(uint64_t s) {
    return Mutation::Erase(Family::kWrite, RollbackColumn(), TimestampRange::Exactly(Ts(s)));
  }
  void Draw(uint64_t ts) { invariants_.OnTimestamps({}, Ts(ts), 1); }
  // Prewrites and commits in two phases; c is drawn between them.
  void CommitAt(const std::string& column, uint64_t s, uint64_t c) {
    Lock lock = LockOf("a");
    Apply({Mutation::Set(Family::kLock, column, Ts(s), EncodeLock(lock))});
    Draw(c);
    Apply({EraseLock(column, s), SetRecord(column, s, c)});
  }
  void Read(const std::string& column, uint64_t ts) {
    const RowRead read{"t",
                       "r",
                       {{Family::kLock, column, TimestampRange::UpTo(Ts(ts)), 1},
                        {Family::kWrite, column, TimestampRange::UpTo(Ts(ts)), 1}}};
    invariants_.OnRead({world_.now(), {&client_->process(), false}, read, {"r", {}}});
  }

  std::string Found() const { return invariants_.violation().has_value() ? invariants_.violation()->checker : ""; }

  World world_{1, Faults::None()};
  Client* const client_;
  Invariants invariants_;
};

TEST_F(InvariantsTest, ACorrectRunBreaksNothing) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002), EraseLock("b", 1001), SetRecord("b", 1001, 1002)});
  invariants_.OnCommitted(Ts(1001), Ts(1002));
  Read("a", 1003);
  Apply({SetLock("a", 1004)});
  Apply({EraseLock("a", 1004), SetMarker(1004)});
  invariants_.OnAborted(Ts(1004));
  Draw(1010);
  CommitAt("a", 1010, 1011);
  invariants_.OnSafePoint({}, Ts(1015));
  Apply({EraseRecord("a", 1002), EraseMarker(1004)});
  EXPECT_EQ(Found(), "");
  EXPECT_EQ(invariants_.CommitOf(Ts(1001)), Ts(1002));
  EXPECT_EQ(invariants_.CommitOf(Ts(1004)), std::nullopt);
}

TEST_F(InvariantsTest, TimestampsThatDoNotGrow) {
  Draw(5);
  EXPECT_EQ(Found(), "O1");
}

TEST_F(InvariantsTest, CommittedAfterARollback) {
  Apply({SetMarker(1001)});
  Draw(1002);
  Apply({SetRecord("a", 1001, 1002)});
  EXPECT_EQ(Found(), "T1");
}

TEST_F(InvariantsTest, RolledBackAfterTheCommit) {
  CommitAt("a", 1001, 1002);
  Apply({SetMarker(1001)});
  EXPECT_EQ(Found(), "T1");
}

TEST_F(InvariantsTest, ASecondaryBeforeThePrimary) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Draw(1002);
  Apply({EraseLock("b", 1001), SetRecord("b", 1001, 1002)});
  EXPECT_EQ(Found(), "T1");
}

TEST_F(InvariantsTest, CommittedWithoutOneOfItsLocks) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Apply({EraseLock("b", 1001), SetMarker(1001)});
  ASSERT_EQ(Found(), "T4");  // the marker beside the lock of "a"
}

TEST_F(InvariantsTest, ACommittedLockRemovedWithoutARecord) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  Apply({EraseLock("b", 1001)});
  EXPECT_EQ(Found(), "T2");
}

TEST_F(InvariantsTest, ARecordAtAnotherTime) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  Draw(1003);
  Apply({EraseLock("b", 1001), SetRecord("b", 1001, 1003)});
  EXPECT_EQ(Found(), "T2");
}

TEST_F(InvariantsTest, ARecordThatDiffersFromItsLock) {
  Apply({SetLock("a", 1001)});
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002, "w")});
  EXPECT_EQ(Found(), "T2");
}

TEST_F(InvariantsTest, ALockRemovedWithoutATrace) {
  Apply({SetLock("a", 1001)});
  Apply({EraseLock("a", 1001)});
  EXPECT_EQ(Found(), "T3");
}

TEST_F(InvariantsTest, TwoLocks) {
  Apply({SetLock("a", 1001)});
  Apply({SetLock("a", 1002)});
  EXPECT_EQ(Found(), "T4");
}

TEST_F(InvariantsTest, ALockBelowARecord) {
  CommitAt("a", 1001, 1003);
  Apply({SetLock("a", 1002)});
  EXPECT_EQ(Found(), "T5");
}

TEST_F(InvariantsTest, RecordsThatOverlap) {
  CommitAt("a", 1001, 1003);
  Draw(1004);
  Apply({SetRecord("a", 1002, 1004)});  // in one step
  EXPECT_EQ(Found(), "T5");
}

TEST_F(InvariantsTest, ATimestampDrawnTooEarly) {
  Draw(1002);
  Apply({SetLock("a", 1001)});
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  EXPECT_EQ(Found(), "T6");
}

TEST_F(InvariantsTest, ATimestampThatWasNeverDrawn) {
  Apply({SetLock("a", 1001)});
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 5000)});
  EXPECT_EQ(Found(), "T6");
}

TEST_F(InvariantsTest, AVerifyRecordOfAnotherVersion) {
  CommitAt("a", 1001, 1002);
  Draw(1004);
  Apply({Mutation::Set(Family::kWrite, "a", Ts(1004),
                       EncodeWriteRecord({.kind = WriteKind::kVerify, .start_ts = Ts(1003), .verified = Ts(7)}))});
  EXPECT_EQ(Found(), "T7");
}

TEST_F(InvariantsTest, ARecordBelowARead) {
  Apply({SetLock("a", 1001)});
  Draw(1002);
  Read("a", 1003);  // as if it had seen no lock
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  EXPECT_EQ(Found(), "T8");
}

TEST_F(InvariantsTest, ReportedCommittedAtAnotherTime) {
  CommitAt("a", 1001, 1002);
  invariants_.OnAborted(Ts(1001));
  EXPECT_EQ(Found(), "T10");
}

TEST_F(InvariantsTest, CommittedAfterItWasReportedAborted) {
  Apply({SetLock("a", 1001)});
  invariants_.OnAborted(Ts(1001));
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  EXPECT_EQ(Found(), "T10");
}

TEST_F(InvariantsTest, ReportedCommittedAndIsNot) {
  invariants_.OnCommitted(Ts(1001), Ts(1002));
  EXPECT_EQ(Found(), "T10");
}

TEST_F(InvariantsTest, ALockThatComesBack) {
  Apply({SetLock("a", 1001)});
  Apply({EraseLock("a", 1001), SetMarker(1001)});
  Apply({SetLock("a", 1001)});
  EXPECT_EQ(Found(), "T11");
}

TEST_F(InvariantsTest, ALockAfterTheCommit) {
  CommitAt("a", 1001, 1002);
  Apply({SetLock("b", 1001)});
  EXPECT_EQ(Found(), "T11");
}

TEST_F(InvariantsTest, TwoPrimaries) {
  Apply({SetLock("a", 1001)});
  Apply({Mutation::Set(Family::kLock, "b", Ts(1001), EncodeLock(LockOf("a")))});
  EXPECT_EQ(Found(), "T13");
}

TEST_F(InvariantsTest, ALockThatIsNeverResolved) {
  Apply({SetLock("a", 1001)});
  const RowRead read{"t", "r", {{Family::kLock, "a", TimestampRange::UpTo(Ts(1005)), 1}}};
  const Row row{"r", {{Family::kLock, "a", Ts(1001), EncodeLock(LockOf("a"))}}};
  // If each time a row of a batch gets lost, the reader gets no answer.
  for (int i = 0; i < 1000; ++i) invariants_.OnRead({world_.now(), {&client_->process(), false}, read, row});
  EXPECT_EQ(Found(), "");
  for (int i = 0; i < 1000 && Found().empty(); ++i) invariants_.OnHeard(client_->process(), read.selectors, row);
  EXPECT_EQ(Found(), "T14");  // its owner has given no sign since timestamp 0
}

TEST_F(InvariantsTest, ALockLeftAtTheEnd) {
  ASSERT_TRUE(world_.store_server().disk()->CreateTable({"t", ""}).ok());
  Apply({SetLock("a", 1001)});
  invariants_.CheckEnd(world_.store_server().disk());
  EXPECT_EQ(Found(), "T14");
}

TEST_F(InvariantsTest, AStoreThatLostARecord) {
  ASSERT_TRUE(world_.store_server().disk()->CreateTable({"t", ""}).ok());
  CommitAt("a", 1001, 1002);
  invariants_.CheckEnd(world_.store_server().disk());
  EXPECT_EQ(Found(), "T15");
}

TEST_F(InvariantsTest, CollectedAboveTheSafePoint) {
  CommitAt("a", 1001, 1002);
  Draw(1003);
  CommitAt("a", 1003, 1004);
  Apply({EraseRecord("a", 1002)});
  EXPECT_EQ(Found(), "G1");
}

TEST_F(InvariantsTest, TheNewestVersionCollected) {
  CommitAt("a", 1001, 1002);
  invariants_.OnSafePoint({}, Ts(1003));
  Apply({EraseRecord("a", 1002)});
  EXPECT_EQ(Found(), "G1");
}

TEST_F(InvariantsTest, ANeededVerdictCollected) {
  Apply({SetLock("a", 1001), SetLock("b", 1001)});
  Draw(1002);
  Apply({EraseLock("a", 1001), SetRecord("a", 1001, 1002)});
  CommitAt("a", 1003, 1004);
  invariants_.OnSafePoint({}, Ts(1005));
  Apply({EraseRecord("a", 1002)});
  EXPECT_EQ(Found(), "G2");
}

TEST_F(InvariantsTest, ASafePointThatPassesASnapshot) {
  invariants_.OnOldestSnapshot(7, Ts(1010));
  Draw(1100);
  invariants_.OnSafePoint({}, Ts(1050));
  EXPECT_EQ(Found(), "G2");
}

TEST_F(InvariantsTest, ASnapshotThatWasReportedTooLate) {
  Draw(1100);
  invariants_.OnOldestSnapshot(7, Ts(1010));
  invariants_.OnSafePoint({}, Ts(1050));
  EXPECT_EQ(Found(), "");
}

TEST_F(InvariantsTest, ALockBelowTheSafePoint) {
  invariants_.OnSafePoint({}, Ts(1001));
  Apply({SetLock("a", 1001)});
  EXPECT_EQ(Found(), "G4");
}

TEST_F(InvariantsTest, ARecordWithoutItsData) {
  Draw(1002);
  Apply({Mutation::Set(Family::kWrite, "a", Ts(1002),
                       EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Ts(1001)}))});
  EXPECT_EQ(Found(), "G5");
}

TEST_F(InvariantsTest, WhenSilentItStillRecordsCommits) {
  Invariants silent(Options(), true, [] {});
  const RowMutation row{"t", "r", {}, {SetRecord("a", 1001, 7)}};
  silent.OnMutation({world_.now(), {&client_->process(), false}, row, {}, {}});
  EXPECT_FALSE(silent.violation().has_value());
  EXPECT_EQ(silent.CommitOf(Ts(1001)), Ts(7));
}

// ----- T8, over ranges

TEST(AnsweredReads, ScansCoverTheirRangesButNotLockedCells) {
  AnsweredReads reads;
  const Timestamp ts(100);
  const ScanRequest request{"t", {"b", "y"}, {{Family::kWrite, std::nullopt, TimestampRange::UpTo(ts), 1}}};
  reads.Add(request, "m", {{"c", {{Family::kLock, "x", Timestamp(5), ""}}}});
  EXPECT_EQ(reads.ReadFrom({"t", "b", "x"}, ts), ts);
  EXPECT_EQ(reads.ReadFrom({"t", "l", "x"}, Timestamp(1)), ts);
  EXPECT_EQ(reads.ReadFrom({"t", "c", "y"}, ts), ts);
  EXPECT_EQ(reads.ReadFrom({"t", "b", "x"}, ts.Next()), Timestamp());
  EXPECT_EQ(reads.ReadFrom({"t", "c", "x"}, ts), Timestamp());  // locked
  EXPECT_EQ(reads.ReadFrom({"t", "m", "x"}, ts), Timestamp());  // not yet read
  EXPECT_EQ(reads.ReadFrom({"t", "a", "x"}, ts), Timestamp());
  EXPECT_EQ(reads.ReadFrom({"u", "b", "x"}, ts), Timestamp());
}

TEST(AnsweredReads, ReadsOfOneColumnCoverThatColumn) {
  AnsweredReads reads;
  const Timestamp ts(100);
  reads.Add(ScanRequest{"t", {}, {{Family::kWrite, "x", TimestampRange::UpTo(ts), 1}}}, std::nullopt, {});
  EXPECT_EQ(reads.ReadFrom({"t", "z", "x"}, ts), ts);
  EXPECT_EQ(reads.ReadFrom({"t", "z", "y"}, ts), Timestamp());
}

TEST(AnsweredReads, OtherReadsDoNotCount) {
  AnsweredReads reads;
  reads.Add(RowRead{"t", "r", {{Family::kWrite, "x", TimestampRange::From(Timestamp(3)), 1}}}, {"r", {}});
  reads.Add(RowRead{"t", "r", {{Family::kWrite, "x", TimestampRange::UpTo(Timestamp(9))}}}, {"r", {}});
  EXPECT_EQ(reads.ReadFrom({"t", "r", "x"}, Timestamp(1)), Timestamp());
}

// Column "a" has the observers "one" and "two".
class ObservedTest : public InvariantsTest {
 protected:
  ObservedTest() {
    invariants_.Observe({{.name = "one", .table = "t", .column = "a"}, {.name = "two", .table = "t", .column = "a"}});
  }

  static Mutation SetPending(uint64_t s) {
    return Mutation::Set(Family::kNotify, PendingColumn("a"), Ts(s), EncodeMark({}));
  }
  static Mutation ErasePending(uint64_t s) {
    return Mutation::Erase(Family::kNotify, PendingColumn("a"), TimestampRange::Exactly(Ts(s)));
  }
  static Mutation SetMark(uint64_t c) { return Mutation::Set(Family::kNotify, "a", Ts(c), EncodeMark({})); }
  static Mutation EraseMarks(uint64_t until) {
    return Mutation::Erase(Family::kNotify, "a", TimestampRange::UpTo(Ts(until)));
  }
  // In one step, as all changes below.
  void Change(uint64_t s, uint64_t c) { Apply({SetRecord("a", s, c), SetMark(c)}); }
  static Mutation SetAck(const std::string& observer, uint64_t s, uint64_t c, const std::string& value) {
    return SetRecord(AckColumn("a", observer), s, c, value);
  }
  static Mutation SetAck(const std::string& observer, uint64_t s, uint64_t c) {
    return SetAck(observer, s, c, EncodeAck(Ts(s)));
  }
};

TEST_F(ObservedTest, ACorrectRunBreaksNothing) {
  Apply({SetLock("a", 10), SetPending(10)});
  Draw(1001);
  Apply({EraseLock("a", 10), SetRecord("a", 10, 1001), ErasePending(10), SetMark(1001)});
  Draw(1100);
  Draw(1101);
  Apply({SetAck("one", 1100, 1101)});
  Draw(1102);
  Draw(1103);
  Apply({SetAck("two", 1102, 1103), EraseMarks(1102)});
  Apply({SetLock("a", 1103), SetPending(1103)});
  Apply({EraseLock("a", 1103), ErasePending(1103), SetMarker(1103)});
  EXPECT_EQ(Found(), "");
  EXPECT_EQ(invariants_.ChangesOf(Named("a")), 1U);
}

TEST_F(ObservedTest, ALockWithoutAMark) {
  Apply({SetLock("a", 10)});
  EXPECT_EQ(Found(), "N1");
}

TEST_F(ObservedTest, APendingMarkIsTakenFromItsLock) {
  Apply({SetLock("a", 10), SetPending(10)});
  Apply({ErasePending(10)});
  EXPECT_EQ(Found(), "N1");
}

TEST_F(ObservedTest, APendingMarkIsLeftBehind) {
  Apply({SetLock("a", 10), SetPending(10)});
  Apply({EraseLock("a", 10), SetMarker(10)});
  EXPECT_EQ(Found(), "N6");
}

TEST_F(ObservedTest, AChangeWithoutAMark) {
  Apply({SetRecord("a", 10, 11)});
  EXPECT_EQ(Found(), "N1");
}

TEST_F(ObservedTest, AMarkThatIsTooOld) {
  Apply({SetRecord("a", 10, 11), SetMark(10)});
  EXPECT_EQ(Found(), "N1");
}

TEST_F(ObservedTest, AMarkRemovedBeforeAllHaveSeenTheChange) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21), EraseMarks(20)});
  EXPECT_EQ(Found(), "N4");
}

TEST_F(ObservedTest, AMarkOfALaterChangeRemoved) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21)});
  Change(22, 24);
  Apply({SetAck("two", 23, 26), EraseMarks(30)});
  EXPECT_EQ(Found(), "N4");
}

TEST_F(ObservedTest, AChangeIsSeenTwice) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21)});
  Apply({SetAck("one", 30, 31)});
  EXPECT_EQ(Found(), "N2");
}

TEST_F(ObservedTest, AChangeMayBeSeenTwiceAfterAReplay) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21)});
  Apply({SetAck("one", 22, 23, ""), SetMark(23)});
  Apply({SetAck("one", 30, 31)});
  EXPECT_EQ(Found(), "");
}

TEST_F(ObservedTest, AChangeToBeSeenAgainKeepsItsMark) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21)});
  Apply({SetAck("two", 22, 23)});
  Apply({SetAck("one", 24, 25, ""), SetMark(25)});
  Apply({EraseMarks(20)});
  EXPECT_EQ(Found(), "");
  Apply({EraseMarks(25)});
  EXPECT_EQ(Found(), "N1");
}

TEST_F(ObservedTest, AnAcknowledgementIsCollected) {
  Change(10, 11);
  Apply({SetAck("one", 20, 21)});
  invariants_.OnSafePoint({}, Ts(100));
  Apply({EraseRecord(AckColumn("a", "one"), 21)});
  EXPECT_EQ(Found(), "G6");
}

TEST_F(ObservedTest, AWeakNotificationMissingAtTheCommit) {
  invariants_.ExpectNotified("t", "b", Named("n"));
  Apply({SetRecord("b", 10, 11), Mutation::Set(Family::kNotify, "n", Ts(11), EncodeMark({}))});
  world_.scheduler().At(Duration(5), kWorldActor, "later", [this] {
    Apply({Mutation::Erase(Family::kNotify, "n", TimestampRange::UpTo(Ts(11)))});
    Apply({SetRecord("b", 20, 21), Mutation::Set(Family::kNotify, "n", Ts(20), EncodeMark({}))});
  });
  world_.Run();
  EXPECT_EQ(Found(), "");
  world_.scheduler().At(Duration(10), kWorldActor, "later", [this] { Apply({SetMark(30)}); });
  world_.Run();
  EXPECT_EQ(Found(), "N9");
}

TEST_F(ObservedTest, AMarkLeftAtTheEnd) {
  Change(10, 11);
  invariants_.CheckEnd(world_.store_server().disk());
  EXPECT_EQ(Found(), "N1");
}

}  // namespace
}  // namespace percolator::sim
