// SPDX-License-Identifier: Apache-2.0

// Scans, on whole clusters: src/txn/scan.h, and the merging with own writes in src/txn/merged_rows.cc.

#include "src/txn/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using Kind = Fault::Kind;

class ScanTest : public ClusterTest {
 protected:
  // A page of the store ends after a few versions, so that scans take many pages.
  ScanTest() : ClusterTest(Options(), {.max_scan_work = 7}) {}

  std::string ScanNow(const ScanOptions& options = {}) {
    absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    return Scanned(*snapshot, options);
  }
  void MustSetMany(int rows) {
    std::vector<PlannedWrite> planned;
    for (int i = 0; i < rows; ++i) planned.push_back(Put(RowName(i), std::to_string(i)));
    MustSet(planned);
  }
  static std::string RowName(int i) { return StrCat("row", 1000 + i); }
  // Returns the status of the last element. No other element may be an error.
  static absl::Status Last(const RowScan& rows, RowScan::Iterator row) {
    absl::Status last;
    for (; row != rows.end(); ++row) {
      EXPECT_THAT(last, IsOk());
      last = row->status();
    }
    return last;
  }
  // A client that commits in two phases leaves these locks and dies, committed or not.
  void Strand(const std::vector<PlannedWrite>& planned, bool committed) {
    Process dying(&world_, Options(false));
    Transaction t(*dying);
    Buffer(t, planned);
    dying.wire().FailAt(kCommitsPrimary, {.kind = committed ? Kind::kDieAfter : Kind::kDieBefore});
    (void)t.Commit();
    EXPECT_TRUE(dying.wire().dead());
    dying.Die();
  }
};

TEST_F(ScanTest, RowsAndColumnsInOrder) {
  MustSet({Put("Joe", "9"), Put("Bob", "3"), Put("Bob", "Bobby").Of("name"), Put("Bob", "a").Of("age")});
  EXPECT_EQ(ScanNow(), "Bob{age=a bal=3 name=Bobby} Joe{bal=9}");
}

TEST_F(ScanTest, AnEmptyTable) { EXPECT_EQ(ScanNow(), ""); }

TEST_F(ScanTest, ARangeAndColumns) {
  MustSet({Put("a", "1"), Put("b", "2"), Put("b", "x").Of("name"), Put("c", "3"), Put("d", "y").Of("name")});
  EXPECT_EQ(ScanNow({.rows = {"b", "d"}}), "b{bal=2 name=x} c{bal=3}");
  EXPECT_EQ(ScanNow({.columns = {"name"}}), "b{name=x} d{name=y}");
  EXPECT_EQ(ScanNow({.columns = {"name", "bal", "name", "nothing"}}), "a{bal=1} b{bal=2 name=x} c{bal=3} d{name=y}");
  EXPECT_EQ(ScanNow({.rows = RowRange::Single("c")}), "c{bal=3}");
  EXPECT_EQ(ScanNow({.rows = RowRange::All().After("c")}), "d{name=y}");
  EXPECT_EQ(ScanNow({.rows = {"x", std::nullopt}}), "");
}

TEST_F(ScanTest, LaterWritesDoNotChangeASnapshot) {
  MustSet({Put("a", "1"), Put("b", "1"), Put("c", "1")});
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  RowScan rows = snapshot->Scan(kTable);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end());
  MustSet({Put("b", "2"), Del("c"), Put("bb", "2")});
  std::string seen;
  while (++row != rows.end()) {
    ASSERT_THAT(*row, IsOk());
    seen += StrCat((*row)->key, "=", (*row)->columns[0].value, " ");
  }
  EXPECT_EQ(seen, "b=1 c=1 ");
  EXPECT_EQ(ScanNow(), "a{bal=1} b{bal=2} bb{bal=2}");
}

TEST_F(ScanTest, DeletedCellsAndRowsAreAbsent) {
  MustSet({Put("a", "1"), Put("a", "x").Of("name"), Put("b", "2")});
  MustSet({Del("a"), Del("b")});
  EXPECT_EQ(ScanNow(), "a{name=x}");
}

TEST_F(ScanTest, MarkersAreNotColumns) {
  MustSet({Put("a", "1")});
  Strand({Put("a", "2"), Put("b", "2")}, false);
  EXPECT_EQ(ScanNow(), "a{bal=1}");
  EXPECT_NE(CellsOf(world_.store.get(), "b").find("rollback"), std::string::npos);
}

TEST_F(ScanTest, VerifiedCellsShowTheirValue) {
  MustSet({Put("a", "1"), Put("b", std::string(300, 'b'))});
  MustSet({Relied("a", 0), Relied("b", 0), Relied("c", 0), Put("d", "4")});
  EXPECT_EQ(ScanNow(), "a{bal=1} b{bal=(300 bytes)} d{bal=4}");
}

TEST_F(ScanTest, LongAndShortValues) {
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 100; ++i) planned.push_back(Put(RowName(i), std::string(i % 3 == 0 ? 1000 : 10, 'v')));
  MustSet(planned);
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  int i = 0;
  for (const absl::StatusOr<ScannedRow>& row : snapshot->Scan(kTable)) {
    ASSERT_THAT(row, IsOk());
    ASSERT_EQ(row->key, RowName(i));
    ASSERT_EQ(row->columns[0].value, planned[i].value);
    ++i;
  }
  EXPECT_EQ(i, 100);
}

// A scan streams: it reads a page only when its rows are reached.
TEST_F(ScanTest, ManyPagesAreReadAsTheyAreReached) {
  MustSetMany(1000);
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  cluster_.wire().CountFromHere();
  RowScan rows = snapshot->Scan(kTable);
  EXPECT_EQ(cluster_.wire().CountOf("scan"), 0u);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end());
  EXPECT_EQ(cluster_.wire().CountOf("scan"), 1u);
  int count = 1;
  for (; ++row != rows.end(); ++count) {
    ASSERT_THAT(*row, IsOk());
    ASSERT_EQ((*row)->key, RowName(count));
  }
  EXPECT_EQ(count, 1000);
  EXPECT_GT(cluster_.wire().CountOf("scan"), 200u);
}

// --- Locks met by scans.

TEST_F(ScanTest, StrandedRowsAreResolvedNotSkipped) {
  MustSetMany(20);
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 20; i += 2) planned.push_back(Put(RowName(i), "new"));
  Strand(planned, true);
  std::string expected;
  for (int i = 0; i < 20; ++i)
    expected += StrCat(i == 0 ? "" : " ", RowName(i), "{bal=", i % 2 == 0 ? "new" : std::to_string(i), "}");
  EXPECT_EQ(ScanNow(), expected);
  EXPECT_THAT(AllLocks(world_.store.get()), ::testing::IsEmpty());
}

TEST_F(ScanTest, StrandedRowsThatDidNotCommitKeepTheirOldValues) {
  MustSetMany(20);
  const std::string before = ScanNow();
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 20; i += 2) planned.push_back(Put(RowName(i), "new"));
  planned.push_back(Put("row9999", "new"));
  Strand(planned, false);
  EXPECT_EQ(ScanNow(), before);
  EXPECT_THAT(AllLocks(world_.store.get()), ::testing::IsEmpty());
}

// The whole page waits.
TEST_F(ScanTest, ALiveLockIsWaitedFor) {
  MustSetMany(5);
  Process slow(&world_, Options(false));
  Transaction t(*slow);
  Buffer(t, {Put(RowName(3), "new")});
  slow.wire().Before(kCommitsPrimary, [&] {  // locked, not committed
    world_.runtime.Start([&] {
      absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
      ASSERT_THAT(snapshot, IsOk());
      EXPECT_EQ(Scanned(*snapshot), "row1000{bal=0} row1001{bal=1} row1002{bal=2} row1003{bal=new} row1004{bal=4}");
    });
    world_.runtime.Sleep(std::chrono::seconds(1));
  });
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  world_.runtime.Sleep(std::chrono::seconds(1));
}

// --- Own writes (T9).

TEST_F(ScanTest, ATransactionSeesItsOwnWrites) {
  MustSet({Put("a", "1"), Put("c", "3"), Put("e", "5")});
  Transaction t(*cluster_);
  Buffer(t, {Put("b", "own"), Put("c", "own"), Del("e"), Put("f", "own"), Put("a", "own").Of("name")});
  EXPECT_EQ(Scanned(t), "a{bal=1 name=own} b{bal=own} c{bal=own} f{bal=own}");
  EXPECT_EQ(Scanned(t, {.rows = {"b", "d"}}), "b{bal=own} c{bal=own}");
  EXPECT_EQ(Scanned(t, {.columns = {"name"}}), "a{name=own}");
  EXPECT_EQ(ScanNow(), "a{bal=1} c{bal=3} e{bal=5}");
}

TEST_F(ScanTest, OwnWritesOfAnotherTableAreAbsent) {
  ASSERT_THAT(cluster_->CreateTable("zoo"), IsOk());
  Transaction t(*cluster_);
  Buffer(t, {Put("a", "1"), Put("a", "z").In("zoo")});
  EXPECT_EQ(Scanned(t), "a{bal=1}");
  EXPECT_EQ(Scanned(t, {}, "zoo"), "a{bal=z}");
}

TEST_F(ScanTest, VerifiesAreNotWrites) {
  MustSet({Put("a", "1")});
  Transaction t(*cluster_);
  Buffer(t, {Relied("a", 0), Relied("b", 0)});
  EXPECT_EQ(Scanned(t), "a{bal=1}");
}

TEST_F(ScanTest, OwnWritesAmongManyPages) {
  MustSetMany(100);
  Transaction t(*cluster_);
  for (int i = 0; i < 100; i += 10) Buffer(t, {Del(RowName(i)), Put(StrCat(RowName(i), "+"), "own")});
  int committed = 0;
  int own = 0;
  std::string last;
  for (const absl::StatusOr<ScannedRow>& row : t.Scan(kTable)) {
    ASSERT_THAT(row, IsOk());
    EXPECT_LT(last, row->key);
    last = row->key;
    ++(last.back() == '+' ? own : committed);
  }
  EXPECT_EQ(committed, 90);
  EXPECT_EQ(own, 10);
}

// Writes during the scan are visible from the row that is reached next.
TEST_F(ScanTest, WritesDuringTheScan) {
  MustSet({Put("a", "1"), Put("c", "3")});
  Transaction t(*cluster_);
  RowScan rows = t.Scan(kTable);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end() && row->ok());
  EXPECT_EQ((*row)->key, "a");
  Buffer(t, {Put("b", "2"), Put("c", "4"), Put("0", "0")});
  ASSERT_TRUE(++row != rows.end() && row->ok());
  EXPECT_EQ((*row)->key, "b");
  ASSERT_TRUE(++row != rows.end() && row->ok());
  EXPECT_EQ((*row)->key, "c");
  EXPECT_EQ((*row)->columns[0].value, "4");
  EXPECT_TRUE(++row == rows.end());
}

// --- Errors.

TEST_F(ScanTest, AMissingTableIsAnErrorAndNotAnEmptyScan) {
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  RowScan rows = snapshot->Scan("nowhere");
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end());
  EXPECT_THAT(*row, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(++row == rows.end());
}

TEST_F(ScanTest, APassingErrorIsTriedAgain) {
  MustSetMany(30);
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  cluster_.wire().CountFromHere();
  for (const size_t call : {1, 2, 5, 8}) cluster_.wire().FailAt(call, {.kind = Kind::kLoseReply});
  // A scan reads its page and then the safe point; a failure of either is retried.
  int count = 0;
  for (const absl::StatusOr<ScannedRow>& row : snapshot->Scan(kTable)) {
    EXPECT_THAT(row, IsOk());
    ++count;
  }
  EXPECT_EQ(count, 30);
}

TEST_F(ScanTest, AnErrorThatStaysEndsTheScan) {
  MustSetMany(30);
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  RowScan rows = snapshot->Scan(kTable);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end() && row->ok());
  cluster_.wire().CountFromHere();
  cluster_.wire().FailFrom(1, {.kind = Kind::kRefused, .error = absl::DataLossError("I/O error")});
  EXPECT_THAT(Last(rows, row), StatusIs(absl::StatusCode::kDataLoss));
}

// G3
TEST_F(ScanTest, ASnapshotThatBecomesTooOldEndsTheScan) {
  MustSetMany(30);
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  RowScan rows = snapshot->Scan(kTable);
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end() && row->ok());
  ASSERT_THAT(world_.store->RaiseSafePoint(Timestamp(1'000'000'000)), IsOk());
  EXPECT_THAT(Last(rows, row), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace percolator
