// SPDX-License-Identifier: Apache-2.0

// Reverse scans, on whole clusters: ScanOptions::reverse in src/txn/scan.h and src/txn/merged_rows.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "percolator/column.h"
#include "percolator/transaction.h"
#include "src/base/strings.h"
#include "src/txn/scan.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Column<int64_t> kCount(kTable, "count");

class ReverseScanTest : public ClusterTest {
 protected:
  // A page of the store ends after a few versions, so that scans take many pages.
  ReverseScanTest() : ClusterTest(Options(), {.max_scan_work = 7}) {}

  std::string ReverseNow(ScanOptions options = {}) {
    options.reverse = true;
    const absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    return Scanned(*snapshot, options);
  }

  static std::string NumberedRow(int i) { return StrCat("row", 1000 + i); }

  void MustSetNumbered(int rows) {
    std::vector<PlannedWrite> planned;
    for (int i = 0; i < rows; ++i) planned.push_back(Put(NumberedRow(i), std::to_string(i)));
    MustSet(planned);
  }

  // A client that commits in two phases leaves these locks and dies, committed or not.
  void LeaveLocks(const std::vector<PlannedWrite>& planned, bool committed) {
    Process dying(&world_, Options(false));
    Transaction t(*dying);
    Buffer(t, planned);
    dying.wire().FailAt(kCommitsPrimary, {.kind = committed ? Fault::Kind::kDieAfter : Fault::Kind::kDieBefore});
    (void)t.Commit();
    EXPECT_TRUE(dying.wire().dead());
    dying.Die();
  }

  // Each row as text, in the order of the scan.
  static std::vector<std::string> RowTexts(const ReadView& view, const ScanOptions& options) {
    std::vector<std::string> texts;
    for (const absl::StatusOr<ScannedRow>& row : view.Scan(kTable, options)) {
      EXPECT_THAT(row, IsOk());
      if (!row.ok()) break;
      std::string& text = texts.emplace_back(row->key);
      for (const ScannedRow::Column& column : row->columns) text += StrCat(" ", column.name, "=", column.value);
    }
    return texts;
  }
};

TEST_F(ReverseScanTest, RowsDescendAndTheirColumnsDoNot) {
  MustSet({Put("Joe", "9"), Put("Bob", "3"), Put("Bob", "Bobby").Of("name"), Put("Bob", "a").Of("age")});
  EXPECT_EQ(ReverseNow(), "Joe{bal=9} Bob{age=a bal=3 name=Bobby}");
}

TEST_F(ReverseScanTest, AnEmptyTable) { EXPECT_EQ(ReverseNow(), ""); }

TEST_F(ReverseScanTest, ARangeAndColumns) {
  MustSet({Put("a", "1"), Put("b", "2"), Put("b", "x").Of("name"), Put("c", "3"), Put("d", "y").Of("name")});
  EXPECT_EQ(ReverseNow({.rows = {"b", "d"}}), "c{bal=3} b{bal=2 name=x}");
  EXPECT_EQ(ReverseNow({.columns = {"name"}}), "d{name=y} b{name=x}");
  EXPECT_EQ(ReverseNow({.rows = RowRange::Single("c")}), "c{bal=3}");
  EXPECT_EQ(ReverseNow({.rows = RowRange::All().Before("c")}), "b{bal=2 name=x} a{bal=1}");
  EXPECT_EQ(ReverseNow({.rows = {"x", std::nullopt}}), "");
  EXPECT_EQ(ReverseNow({.rows = {"d", "b"}}), "");
}

TEST_F(ReverseScanTest, KeysOnly) {
  MustSet({Put("a", "1"), Put("b", std::string(1000, 'v')), Put("c", "3").Of("name")});
  EXPECT_EQ(ReverseNow({.keys_only = true}), "c{} b{} a{}");
  EXPECT_EQ(ReverseNow({.columns = {"bal"}, .limit = 1, .keys_only = true}), "b{}");
}

TEST_F(ReverseScanTest, ALimitKeepsTheLastRows) {
  MustSetNumbered(200);
  cluster_.wire().CountFromHere();
  EXPECT_EQ(ReverseNow({.limit = 3}), "row1199{bal=199} row1198{bal=198} row1197{bal=197}");
  EXPECT_LE(cluster_.wire().CountOf("scan"), 3u) << "the rows before them are not read";
  EXPECT_EQ(ReverseNow({.rows = {"row1005", "row1007"}, .limit = 5}), "row1006{bal=6} row1005{bal=5}");
}

TEST_F(ReverseScanTest, LongAndShortValuesInManyPages) {
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 100; ++i) planned.push_back(Put(NumberedRow(i), std::string(i % 3 == 0 ? 1000 : 10, 'v')));
  MustSet(planned);
  const absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  int i = 100;
  for (const absl::StatusOr<ScannedRow>& row : snapshot->Scan(kTable, {.reverse = true})) {
    ASSERT_THAT(row, IsOk());
    --i;
    ASSERT_EQ(row->key, NumberedRow(i));
    ASSERT_EQ(row->columns[0].value, planned[i].value);
  }
  EXPECT_EQ(i, 0);
  EXPECT_GT(cluster_.wire().CountOf("scan"), 10u);
}

TEST_F(ReverseScanTest, ATypedColumn) {
  ASSERT_THAT(cluster_->Transact([](ReadWrite& t) {
    for (int64_t i = 0; i < 5; ++i) t.Set(kCount, NumberedRow(static_cast<int>(i)), i);
  }),
              IsOk());
  const absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  std::vector<int64_t> counts;
  for (const auto& entry : snapshot->Scan(kCount, {.limit = 3, .reverse = true})) {
    ASSERT_THAT(entry, IsOk());
    counts.push_back(entry->value);
  }
  EXPECT_THAT(counts, ElementsAre(4, 3, 2));
}

TEST_F(ReverseScanTest, AnOlderSnapshotSeesOlderRows) {
  MustSet({Put("a", "1"), Put("b", "1"), Put("c", "1")});
  const absl::StatusOr<Snapshot> before = cluster_->GetSnapshot();
  ASSERT_THAT(before, IsOk());
  RowScan rows = before->Scan(kTable, {.reverse = true});
  RowScan::Iterator row = rows.begin();
  ASSERT_FALSE(row == rows.end());
  ASSERT_THAT(*row, IsOk());
  EXPECT_EQ((*row)->key, "c");
  MustSet({Put("b", "2"), Del("a"), Put("aa", "2"), Put("d", "2")});
  ++row;
  std::string seen;
  for (; row != rows.end(); ++row) {
    ASSERT_THAT(*row, IsOk());
    seen += StrCat((*row)->key, "=", (*row)->columns[0].value, " ");
  }
  EXPECT_EQ(seen, "b=1 a=1 ");
  EXPECT_EQ(Scanned(*before, {.reverse = true}), "c{bal=1} b{bal=1} a{bal=1}");
  EXPECT_EQ(ReverseNow(), "d{bal=2} c{bal=1} b{bal=2} aa{bal=2}");
}

// --- Locks met by scans.

TEST_F(ReverseScanTest, LockedRowsAreResolvedNotSkipped) {
  MustSetNumbered(20);
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 20; i += 2) planned.push_back(Put(NumberedRow(i), "new"));
  LeaveLocks(planned, true);
  std::string expected;
  for (int i = 19; i >= 0; --i) {
    expected += StrCat(i == 19 ? "" : " ", NumberedRow(i), "{bal=", i % 2 == 0 ? "new" : std::to_string(i), "}");
  }
  EXPECT_EQ(ReverseNow(), expected);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

TEST_F(ReverseScanTest, LockedRowsThatDidNotCommitKeepTheirOldValues) {
  MustSetNumbered(20);
  const std::string before = ReverseNow();
  std::vector<PlannedWrite> planned;
  for (int i = 0; i < 20; i += 2) planned.push_back(Put(NumberedRow(i), "new"));
  planned.push_back(Put("row9999", "new"));
  LeaveLocks(planned, false);
  EXPECT_EQ(ReverseNow(), before);
  EXPECT_THAT(AllLocks(world_.store.get()), IsEmpty());
}

TEST_F(ReverseScanTest, ALimitDoesNotCountDeletedRows) {
  MustSetNumbered(20);
  LeaveLocks({Put("row9998", "new"), Put("row9999", "new")}, false);
  MustSet({Del(NumberedRow(19)), Del(NumberedRow(17))});
  EXPECT_EQ(ReverseNow({.limit = 2}), "row1018{bal=18} row1016{bal=16}");
}

// --- Own writes (T9).

TEST_F(ReverseScanTest, ATransactionSeesItsOwnWrites) {
  ASSERT_THAT(cluster_->EnsureTable("zoo"), IsOk());
  MustSet({Put("a", "1"), Put("c", "3"), Put("e", "5")});
  Transaction t(*cluster_);
  Buffer(t, {Put("b", "own"), Put("c", "own"), Del("e"), Put("f", "own"), Put("a", "own").Of("name"), Relied("g", 0),
             Put("z", "not here").In("zoo")});
  EXPECT_EQ(Scanned(t, {.reverse = true}), "f{bal=own} c{bal=own} b{bal=own} a{bal=1 name=own}");
  EXPECT_EQ(Scanned(t, {.rows = {"b", "d"}, .reverse = true}), "c{bal=own} b{bal=own}");
  EXPECT_EQ(Scanned(t, {.columns = {"name"}, .reverse = true}), "a{name=own}");
  EXPECT_EQ(Scanned(t, {.limit = 2, .reverse = true}), "f{bal=own} c{bal=own}");
  EXPECT_EQ(Scanned(t, {.limit = 3, .keys_only = true, .reverse = true}), "f{} c{} b{}");
  EXPECT_EQ(Scanned(t, {.rows = {"e", "f"}, .reverse = true}), "");
  EXPECT_EQ(Scanned(t, {.rows = {"f", "b"}, .reverse = true}), "");
  EXPECT_EQ(Scanned(t, {.reverse = true}, "zoo"), "z{bal=not here}");
  EXPECT_EQ(ReverseNow(), "e{bal=5} c{bal=3} a{bal=1}");
}

TEST_F(ReverseScanTest, ALimitDoesNotCountOwnDeletes) {
  MustSetNumbered(50);
  Transaction t(*cluster_);
  for (int i = 20; i < 50; ++i) Buffer(t, {Del(NumberedRow(i))});
  EXPECT_EQ(Scanned(t, {.limit = 2, .reverse = true}), "row1019{bal=19} row1018{bal=18}");
}

// Writes during the scan are visible from the row that is reached next.
TEST_F(ReverseScanTest, WritesDuringTheScan) {
  MustSet({Put("a", "1"), Put("c", "3")});
  Transaction t(*cluster_);
  RowScan rows = t.Scan(kTable, {.reverse = true});
  RowScan::Iterator row = rows.begin();
  ASSERT_FALSE(row == rows.end());
  ASSERT_THAT(*row, IsOk());
  EXPECT_EQ((*row)->key, "c");
  Buffer(t, {Put("b", "2"), Put("a", "4"), Put("d", "0")});
  std::string seen;
  for (++row; row != rows.end(); ++row) {
    ASSERT_THAT(*row, IsOk());
    seen += StrCat((*row)->key, "=", (*row)->columns[0].value, " ");
  }
  EXPECT_EQ(seen, "b=2 a=4 ");
}

TEST_F(ReverseScanTest, RandomReverseScansAgreeWithForwardOnes) {
  std::mt19937_64 random(5);
  const auto below = [&random](uint64_t n) { return random() % n; };
  const auto row = [&] {
    static constexpr char kBytes[] = {'\x00', '\x01', 'a', '\xfe', '\xff'};
    std::string key;
    for (uint64_t n = 1 + below(2); n > 0; --n) key += kBytes[below(5)];
    return key;
  };
  const auto write = [&] {
    PlannedWrite planned = below(3) == 0 ? Del(row()) : Put(row(), std::string(below(2) == 0 ? 400 : 3, 'v'));
    return below(3) == 0 ? planned.Of("name") : planned;
  };
  for (int round = 0; round < 30; ++round) {
    std::vector<PlannedWrite> committed;
    for (uint64_t n = 1 + below(6); n > 0; --n) committed.push_back(write());
    MustSet(committed);
    Transaction t(*cluster_);
    for (uint64_t n = below(8); n > 0; --n) Buffer(t, {write()});
    for (int i = 0; i < 6; ++i) {
      ScanOptions options;
      if (below(2) == 0) options.rows.start = row();
      if (below(2) == 0) options.rows.limit = row();
      if (below(3) == 0) options.columns = {"name"};
      options.keys_only = below(4) == 0;
      std::vector<std::string> expected = RowTexts(t, options);
      std::reverse(expected.begin(), expected.end());
      options.reverse = true;
      if (below(2) == 0) {
        options.limit = 1 + below(4);
        expected.resize(std::min(expected.size(), options.limit));
      }
      ASSERT_EQ(RowTexts(t, options), expected) << "round " << round;
    }
  }
}

TEST_F(ReverseScanTest, PagingBackwardsWithBefore) {
  MustSetNumbered(50);
  Transaction t(*cluster_);
  Buffer(t, {Del(NumberedRow(30)), Put("row1020+", "own")});
  const std::vector<std::string> all = RowTexts(t, {.reverse = true});
  EXPECT_EQ(all.size(), 50u);
  std::vector<std::string> joined;
  ScanOptions page{.limit = 7, .keys_only = true, .reverse = true};
  for (size_t pages = 0; pages <= all.size(); ++pages) {
    const std::vector<std::string> keys = RowTexts(t, page);
    if (keys.empty()) break;
    joined.insert(joined.end(), keys.begin(), keys.end());
    page.rows = page.rows.Before(keys.back());
  }
  EXPECT_EQ(joined, RowTexts(t, {.keys_only = true, .reverse = true}));
}

// --- Errors.

TEST_F(ReverseScanTest, APassingErrorIsTriedAgain) {
  MustSetNumbered(30);
  const absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  cluster_.wire().CountFromHere();
  for (const size_t call : {1, 2, 5, 8}) cluster_.wire().FailAt(call, {.kind = Fault::Kind::kLoseReply});
  EXPECT_EQ(RowTexts(*snapshot, {.reverse = true}).size(), 30u);
}

TEST_F(ReverseScanTest, AStoreWithoutReverseScansReportsAnError) {
  MustSetNumbered(3);
  const absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  cluster_.wire().CountFromHere();
  cluster_.wire().FailFrom(1, {.kind = Fault::Kind::kRefused, .error = absl::UnimplementedError("too old")});
  std::vector<absl::Status> statuses;
  for (const absl::StatusOr<ScannedRow>& row : snapshot->Scan(kTable, {.reverse = true})) {
    statuses.push_back(row.status());
  }
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace percolator
