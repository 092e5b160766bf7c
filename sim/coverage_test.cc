// SPDX-License-Identifier: Apache-2.0

#include "sim/coverage.h"

#include <gtest/gtest.h>

#include "src/txn/columns.h"
#include "src/txn/lock.h"

namespace percolator::sim {
namespace {

constexpr ActorId kWriter = 4;
constexpr ActorId kReader = 5;
constexpr Timestamp kStart(7);

RowMutation Change(std::string_view row, std::vector<Mutation> mutations) {
  return {"t", std::string(row), {}, std::move(mutations)};
}

Mutation LockCell(std::optional<CellName> primary = std::nullopt) {
  Lock lock;
  lock.primary = std::move(primary);
  return Mutation::Set(Family::kLock, "c", kStart, EncodeLock(lock));
}

Mutation Unlock() { return Mutation::Erase(Family::kLock, "c", TimestampRange::Exactly(kStart)); }
Mutation Record() { return Mutation::Set(Family::kWrite, "c", Timestamp(8), "record"); }
Mutation Marker() { return Mutation::Set(Family::kWrite, RollbackColumn(), kStart, "marker"); }

TEST(StepFinderTest, RecognisesTheStepsOfATransactionAndOfItsResolvers) {
  StepFinder steps;
  EXPECT_EQ(steps.Of(kWriter, Change("a", {LockCell()})), Only(Step::kPrewritePrimary));
  EXPECT_EQ(steps.Of(kWriter, Change("b", {LockCell(CellName{"t", "a", "c"})})), Only(Step::kPrewriteSecondary));
  EXPECT_EQ(steps.Of(kWriter, Change("a", {Unlock(), Record()})), Only(Step::kCommitPrimary));
  EXPECT_EQ(steps.Of(kWriter, Change("b", {Unlock(), Record()})), Only(Step::kCommitSecondary));
  EXPECT_EQ(steps.Of(kReader, Change("b", {Unlock(), Record()})), Only(Step::kRollForward));
  EXPECT_EQ(steps.Of(kWriter, Change("b", {Unlock(), Marker()})), Only(Step::kRollBackOwn));
  EXPECT_EQ(steps.Of(kReader, Change("b", {Unlock(), Marker()})), Only(Step::kRollBack));
  EXPECT_EQ(steps.Of(kReader, Change("a", {Marker(), LockCell(), Unlock()})), Only(Step::kMarkMissing));
}

TEST(StepFinderTest, RecognisesTheStepsOfObserversAndCollectors) {
  StepFinder steps;
  const Mutation ack = Mutation::Set(Family::kLock, AckColumn("c", "observer"), kStart, EncodeLock({}));
  EXPECT_EQ(steps.Of(kWriter, Change("a", {ack})), Only(Step::kPrewritePrimary) | Only(Step::kAcknowledge));
  EXPECT_EQ(steps.Of(kWriter, Change("a", {Mutation::Erase(Family::kNotify, "c", TimestampRange::All())})),
            Only(Step::kRemoveMark));
  EXPECT_EQ(steps.Of(kWriter, Change("a", {Mutation::Erase(Family::kWrite, "c", TimestampRange::All())})),
            Only(Step::kCollect));
  EXPECT_EQ(steps.Of(RowRead{"t", "a", {{Family::kData, "c"}}}), Only(Step::kLoadValue));
  EXPECT_EQ(steps.Of(ScanRequest{"t", RowRange::All(), {{Family::kNotify}}}), Only(Step::kFindMarks));
}

TEST(CoverageTableTest, NamesThePairsThatAreMissing) {
  CoverageTable table;
  EXPECT_EQ(table.Missing().size(), table.possible());
  CoveredPairs run;
  run.Add(Only(Step::kGet) | Only(Step::kCollect), Mishap::kCrash);
  run.Add(Only(Step::kGet),
          Mishap::kDuplicate);  // impossible: reads are not sent twice
  table.Add(run);
  EXPECT_EQ(table.Missing().size(), table.possible() - 2);
  EXPECT_TRUE(run.Has(Step::kCollect, Mishap::kCrash));
  EXPECT_FALSE(run.Has(Step::kCollect, Mishap::kDuplicate));
}

}  // namespace
}  // namespace percolator::sim
