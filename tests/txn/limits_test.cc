// SPDX-License-Identifier: Apache-2.0

// Limits have names, and errors that name the size and the limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "percolator/cluster.h"
#include "src/base/strings.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

class LimitsTest : public ClusterTest {
 protected:
  static ClusterOptions Small() {
    ClusterOptions options = Options();
    options.limits = {.max_row_key_bytes = 10,
                      .max_column_bytes = 5,
                      .max_value_bytes = 300,
                      .max_cells = 4,
                      .max_total_bytes = 1000};
    return options;
  }
  LimitsTest() : ClusterTest(Small()) {}

  // Expects that these writes fail, and then reads and the commit too.
  absl::Status Refused(absl::FunctionRef<void(Transaction& t)> write) {
    Transaction t(*cluster_);
    write(t);
    absl::Status status = t.status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(t.Get({kTable, "r", "c"}).status(), status);
    const CommitResult result = t.Commit();
    ExpectOutcome(result, CommitResult::Outcome::kAborted);
    EXPECT_EQ(result.status, status);
    return status;
  }
  void ExpectRefused(absl::FunctionRef<void(Transaction& t)> write, const std::string& what, size_t size,
                     size_t limit) {
    const std::string text(Refused(write).message());
    EXPECT_THAT(text, HasSubstr(what));
    EXPECT_THAT(text, HasSubstr(StrCat(" has ", size, " ")));
    EXPECT_THAT(text, HasSubstr(StrCat(", more than the limit of ", limit)));
  }
};

TEST_F(LimitsTest, RowKeyBytes) {
  Transaction t(*cluster_);
  t.Set({kTable, std::string(10, 'r'), "c"}, "v");
  EXPECT_THAT(t.status(), IsOk());
  const std::string long_key(11, 'r');
  ExpectRefused([&](Transaction& u) { u.Set({kTable, long_key, "c"}, "v"); }, "row key", 11, 10);
  ExpectRefused([&](Transaction& u) { u.Delete({kTable, long_key, "c"}); }, "row key", 11, 10);
  ExpectRefused([&](Transaction& u) { u.Verify({kTable, long_key, "c"}); }, "row key", 11, 10);
  Refused([](Transaction& u) { u.Set({kTable, "", "c"}, "v"); }).IgnoreError();
}

TEST_F(LimitsTest, ColumnBytes) {
  Transaction t(*cluster_);
  t.Set({kTable, "r", std::string(5, 'c')}, "v");
  EXPECT_THAT(t.status(), IsOk());
  ExpectRefused([](Transaction& u) { u.Set({kTable, "r", std::string(6, 'c')}, "v"); }, "column", 6, 5);
}

TEST_F(LimitsTest, ValueBytes) {
  Transaction t(*cluster_);
  t.Set({kTable, "r", "c"}, std::string(300, 'v'));
  EXPECT_THAT(t.status(), IsOk());
  ExpectRefused([](Transaction& u) { u.Set({kTable, "r", "c"}, std::string(301, 'v')); }, "value", 301, 300);
}

TEST_F(LimitsTest, Cells) {
  const auto fill = [](Transaction& t) {
    t.Set({kTable, "r1", "c"}, "v");
    t.Delete({kTable, "r2", "c"});
    t.Verify({kTable, "r3", "c"});
    t.Set({kTable, "r4", "c"}, "v");
    EXPECT_THAT(t.status(), IsOk());
  };
  const auto one_more = [&](Transaction& t) { fill(t), t.Set({kTable, "r5", "c"}, "v"); };
  const auto verify_one_more = [&](Transaction& t) { fill(t), t.Verify({kTable, "r5", "c"}); };
  ExpectRefused(one_more, "cells", 5, 4);
  ExpectRefused(verify_one_more, "cells", 5, 4);
  Transaction full(*cluster_);
  fill(full);
  full.Set({kTable, "r1", "c"}, "again");  // a cell that is already counted
  EXPECT_THAT(full.status(), IsOk());
}

TEST_F(LimitsTest, TotalBytes) {
  const auto fill = [](Transaction& t) {
    for (const char* row : {"r1", "r2", "r3"}) t.Set({kTable, row, "c"}, std::string(300, 'v'));
    EXPECT_THAT(t.status(), IsOk());
  };
  const auto one_more = [](Transaction& t) { t.Set({kTable, "r4", "c"}, std::string(300, 'v')); };
  const absl::Status status = Refused([&](Transaction& t) { fill(t), one_more(t); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("transaction has "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
  // Replaced and deleted values do not count.
  Transaction t(*cluster_);
  fill(t);
  t.Set({kTable, "r1", "c"}, "small");
  t.Delete({kTable, "r2", "c"});
  one_more(t);
  EXPECT_THAT(t.status(), IsOk());
}

// The name of a column counts four times, because the requests of a commit repeat it that often.
TEST_F(LimitsTest, NamesCountToo) {
  ClusterOptions options = Options();
  options.limits.max_total_bytes = 100;
  Process process(&world_, options);
  Transaction t(*process);
  t.Set({kTable, "r", std::string(22, 'c')}, "v");
  EXPECT_THAT(t.status(), IsOk());
  Transaction other(*process);
  other.Set({kTable, "r", std::string(23, 'c')}, "v");
  EXPECT_THAT(other.status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A refused write fails the transaction, including its accepted writes.
TEST_F(LimitsTest, ARefusedWriteFailsTheTransaction) {
  Refused([](Transaction& t) {
    t.Set({kTable, "r", "c"}, "good");
    EXPECT_EQ(Get(t, "r", "c"), "good");
    t.Set({kTable, "r", "c"}, std::string(301, 'v'));
    t.Set({kTable, "r", "c"}, "good again");
  }).IgnoreError();
  EXPECT_EQ(Now("r", "c"), std::nullopt);
}

TEST_F(LimitsTest, ReservedNamesAreRefused) {
  Refused([](Transaction& t) { t.Set({kTable, "r", std::string("\0c", 2)}, "v"); }).IgnoreError();
  Refused([](Transaction& t) { t.Delete({kTable, "r", std::string("\0", 1)}); }).IgnoreError();
}

// The column of the markers can be read, and has no value.
TEST_F(LimitsTest, AReservedColumnHasNoValue) {
  MustSet({Put("r", "1").Of("c")});
  Transaction loser(*cluster_);
  EXPECT_EQ(Get(loser, "r", "c"), "1");
  MustSet({Put("r", "2").Of("c")});
  Buffer(loser, {Put("r", "3").Of("c")});
  ExpectOutcome(loser.Commit(), CommitResult::Outcome::kAborted);
  EXPECT_EQ(Now("r", std::string("\0rollback", 9)), std::nullopt);
}

// Names that the store would refuse are errors of the call, not crashes.
TEST_F(LimitsTest, ReadsWithInvalidNamesFail) {
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_THAT(snapshot->Get({kTable, "", "c"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get({kTable, std::string(5000, 'r'), "c"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get({kTable, "r", std::string(20'000, 'c')}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(snapshot->Get({"no such table!", "r", "c"}), StatusIs(absl::StatusCode::kNotFound));
}

// The store accepts everything that the limits allow, in one row or in many: the largest transactions with default
// options.
class DefaultLimitsTest : public ClusterTest, public ::testing::WithParamInterface<bool> {
 protected:
  DefaultLimitsTest() : ClusterTest(Options(GetParam())) {}
};
INSTANTIATE_TEST_SUITE_P(Commits, DefaultLimitsTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "OneStep" : "TwoPhases"; });

TEST_P(DefaultLimitsTest, AsManyCellsAsAllowedInOneRow) {
  const TransactionLimits limits;
  Transaction t(*cluster_);
  Transaction too_many(*cluster_);
  for (size_t i = 0; i < limits.max_cells; ++i) {
    t.Set({kTable, "row", StrCat("c", i)}, "v");
    too_many.Set({kTable, "row", StrCat("c", i)}, "w");
  }
  ASSERT_THAT(t.status(), IsOk());
  ASSERT_THAT(too_many.status(), IsOk());
  too_many.Set({kTable, "row", "one more"}, "w");
  EXPECT_THAT(too_many.status(), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectOutcome(too_many.Commit(), CommitResult::Outcome::kAborted);
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("row", "c0"), "v");
}

TEST_P(DefaultLimitsTest, TheLargestValues) {
  const TransactionLimits limits;
  Transaction t(*cluster_);
  t.Set({kTable, "a", "c"}, std::string(limits.max_value_bytes, 'v'));
  t.Set({kTable, "b", "c"}, std::string(limits.max_total_bytes - limits.max_value_bytes - 100, 'v'));
  ASSERT_THAT(t.status(), IsOk());
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
  EXPECT_EQ(Now("a", "c")->size(), limits.max_value_bytes);
}

// Names of the max length, of zero bytes, which take two bytes in records.
TEST_P(DefaultLimitsTest, TheLongestNames) {
  const TransactionLimits limits;
  const std::string row = "r" + std::string(limits.max_row_key_bytes - 1, '\0');
  Transaction t(*cluster_);
  for (int i = 0; i < 900; ++i) {
    std::string column = StrCat(1000 + i, std::string(limits.max_column_bytes - 4, '\0'));
    t.Set({kTable, row, column}, "v");
    ASSERT_THAT(t.status(), IsOk()) << i;
  }
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
}

// A lock repeats the name of its primary, so a row of short names may make a large request.
TEST_P(DefaultLimitsTest, ManyShortNamesBesideTheLongestPrimary) {
  const TransactionLimits limits;
  const std::string row = "r" + std::string(limits.max_row_key_bytes - 1, '\0');
  Transaction t(*cluster_);
  t.Set({kTable, row, "!" + std::string(limits.max_column_bytes - 1, '\0')}, "v");
  for (int i = 0; i < 3000; ++i) t.Set({kTable, row, StrCat("c", i)}, "v");
  ASSERT_THAT(t.status(), IsOk());
  ExpectOutcome(t.Commit(), CommitResult::Outcome::kCommitted);
}

}  // namespace
}  // namespace percolator
