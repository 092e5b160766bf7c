// Limits have names, and errors that say what was too large and what is allowed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "percolator/cluster.h"
#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LimitsTest : public ClusterTest {
 protected:
  static ClusterOptions Small() {
    ClusterOptions options = Options();
    options.limits = {.row_key_bytes = 10, .column_bytes = 5, .value_bytes = 300, .cells = 4, .total_bytes = 1000};
    return options;
  }
  LimitsTest() : ClusterTest(Small()) {}

  static void ExpectRefused(const absl::Status& status, const std::string& what, size_t size, size_t limit) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    const std::string text(status.message());
    EXPECT_THAT(text, HasSubstr(what));
    EXPECT_THAT(text, HasSubstr(std::to_string(size)));
    EXPECT_THAT(text, HasSubstr(std::to_string(limit)));
  }
};

TEST_F(LimitsTest, RowKeyBytes) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, std::string(10, 'r'), "c", "v"), IsOk());
  ExpectRefused(t.Set(kTable, std::string(11, 'r'), "c", "v"), "row key", 11, 10);
  ExpectRefused(t.Delete(kTable, std::string(11, 'r'), "c"), "row key", 11, 10);
  ExpectRefused(t.Verify(kTable, std::string(11, 'r'), "c"), "row key", 11, 10);
  EXPECT_THAT(t.Set(kTable, "", "c", "v"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(LimitsTest, ColumnBytes) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r", std::string(5, 'c'), "v"), IsOk());
  ExpectRefused(t.Set(kTable, "r", std::string(6, 'c'), "v"), "column", 6, 5);
}

TEST_F(LimitsTest, ValueBytes) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r", "c", std::string(300, 'v')), IsOk());
  ExpectRefused(t.Set(kTable, "r", "c", std::string(301, 'v')), "value", 301, 300);
}

TEST_F(LimitsTest, Cells) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r1", "c", "v"), IsOk());
  EXPECT_THAT(t.Delete(kTable, "r2", "c"), IsOk());
  EXPECT_THAT(t.Verify(kTable, "r3", "c"), IsOk());
  EXPECT_THAT(t.Set(kTable, "r4", "c", "v"), IsOk());
  ExpectRefused(t.Set(kTable, "r5", "c", "v"), "cells", 5, 4);
  ExpectRefused(t.Verify(kTable, "r5", "c"), "cells", 5, 4);
  EXPECT_THAT(t.Set(kTable, "r1", "c", "again"), IsOk());  // one that is there already
}

TEST_F(LimitsTest, TotalBytes) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r1", "c", std::string(300, 'v')), IsOk());
  EXPECT_THAT(t.Set(kTable, "r2", "c", std::string(300, 'v')), IsOk());
  EXPECT_THAT(t.Set(kTable, "r3", "c", std::string(300, 'v')), IsOk());
  const absl::Status status = t.Set(kTable, "r4", "c", std::string(300, 'v'));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr("bytes in a transaction"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
  // What is replaced or deleted counts no more.
  EXPECT_THAT(t.Set(kTable, "r1", "c", "small"), IsOk());
  EXPECT_THAT(t.Delete(kTable, "r2", "c"), IsOk());
  EXPECT_THAT(t.Set(kTable, "r4", "c", std::string(300, 'v')), IsOk());
}

// The name of a column counts four times: it occurs so often in the requests of a commit.
TEST_F(LimitsTest, NamesCountToo) {
  ClusterOptions options = Options();
  options.limits.total_bytes = 100;
  Process process(&world_, options);
  Transaction t(process.get());
  EXPECT_THAT(t.Set(kTable, "r", std::string(22, 'c'), "v"), IsOk());
  Transaction other(process.get());
  EXPECT_THAT(other.Set(kTable, "r", std::string(23, 'c'), "v"), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A refused write leaves the transaction as it was.
TEST_F(LimitsTest, ARefusedWriteDoesNotSpoilTheTransaction) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r", "c", "good"), IsOk());
  EXPECT_THAT(t.Set(kTable, "r", "c", std::string(301, 'v')), Not(IsOk()));
  EXPECT_EQ(Get(t, "r", "c"), "good");
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("r", "c"), "good");
}

TEST_F(LimitsTest, ReservedNamesAreRefused) {
  Transaction t(cluster_.get());
  EXPECT_THAT(t.Set(kTable, "r", std::string("\0c", 2), "v"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(t.Delete(kTable, "r", std::string("\0", 1)), StatusIs(absl::StatusCode::kInvalidArgument));
}

// What the markers are in can be asked for, and says nothing.
TEST_F(LimitsTest, AReservedColumnHasNoValue) {
  MustSet({Put("r", "1").Of("c")});
  Transaction loser(cluster_.get());
  EXPECT_EQ(Get(loser, "r", "c"), "1");
  MustSet({Put("r", "2").Of("c")});
  Buffer(loser, {Put("r", "3").Of("c")});
  ExpectOutcome(loser.Commit(), CommitResult::Outcome::kAborted);
  EXPECT_EQ(Now("r", std::string("\0rollback", 9)), std::nullopt);
}

// Names that the store would not take are errors of the call, not crashes.
TEST_F(LimitsTest, ReadingWithNamesThatCannotBe) {
  absl::StatusOr<Snapshot> snapshot = cluster_->Now();
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_THAT(snapshot->Get(kTable, "", "c"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get(kTable, std::string(5000, 'r'), "c"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get(kTable, "r", std::string(20'000, 'c')), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get("no such table!", "r", "c"), StatusIs(absl::StatusCode::kNotFound));
}

// Whatever the limits allow, the store takes, in one row or in many: the largest transactions with default options.
class DefaultLimitsTest : public ClusterTest, public ::testing::WithParamInterface<bool> {
 protected:
  DefaultLimitsTest() : ClusterTest(Options(GetParam())) {}
};
INSTANTIATE_TEST_SUITE_P(Commits, DefaultLimitsTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "OneStep" : "TwoPhases"; });

TEST_P(DefaultLimitsTest, AsManyCellsAsAllowedInOneRow) {
  const TransactionLimits limits;
  Transaction t(cluster_.get());
  for (size_t i = 0; i < limits.cells; ++i) {
    ASSERT_THAT(t.Set(kTable, "row", StrCat("c", i), "v"), IsOk());
  }
  EXPECT_THAT(t.Set(kTable, "row", "one more", "v"), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("row", "c0"), "v");
}

TEST_P(DefaultLimitsTest, TheLargestValues) {
  const TransactionLimits limits;
  Transaction t(cluster_.get());
  ASSERT_THAT(t.Set(kTable, "a", "c", std::string(limits.value_bytes, 'v')), IsOk());
  ASSERT_THAT(t.Set(kTable, "b", "c", std::string(limits.total_bytes - limits.value_bytes - 100, 'v')), IsOk());
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("a", "c")->size(), limits.value_bytes);
}

// Names as long as allowed, with zeros, which take two bytes in records.
TEST_P(DefaultLimitsTest, TheLongestNames) {
  const TransactionLimits limits;
  const std::string row = "r" + std::string(limits.row_key_bytes - 1, '\0');
  Transaction t(cluster_.get());
  for (int i = 0; i < 900; ++i) {
    std::string column = StrCat(1000 + i, std::string(limits.column_bytes - 4, '\0'));
    ASSERT_THAT(t.Set(kTable, row, column, "v"), IsOk()) << i;
  }
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
}

// A lock repeats the name of its primary, so that a row of short names may make a large request.
TEST_P(DefaultLimitsTest, ManyShortNamesBesideTheLongestPrimary) {
  const TransactionLimits limits;
  const std::string row = "r" + std::string(limits.row_key_bytes - 1, '\0');
  Transaction t(cluster_.get());
  ASSERT_THAT(t.Set(kTable, row, "!" + std::string(limits.column_bytes - 1, '\0'), "v"), IsOk());
  for (int i = 0; i < 3000; ++i) ASSERT_THAT(t.Set(kTable, row, StrCat("c", i), "v"), IsOk()) << i;
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
}

}  // namespace
}  // namespace percolator
