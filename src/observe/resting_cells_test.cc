// SPDX-License-Identifier: Apache-2.0

#include "src/observe/resting_cells.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace percolator {
namespace {

constexpr Duration kPeriod(10);

ColumnObservers TwoObservers() { return std::make_shared<const std::vector<ClusterObserver>>(2); }

QueuedCell CellOf(const std::string& row, const ColumnObservers& observers) {
  QueuedCell cell;
  cell.name = {"t", row, "c"};
  cell.observers = observers;
  cell.jobs.resize(2);
  return cell;
}

TEST(RestingCellsTest, ACellRestsForThePeriod) {
  RestingCells resting(10, kPeriod);
  const QueuedCell cell = CellOf("r", TwoObservers());
  EXPECT_FALSE(resting.IsResting(cell.name, Duration(0)));
  resting.Add(cell, Duration(5));
  EXPECT_TRUE(resting.IsResting(cell.name, Duration(14)));
  EXPECT_FALSE(resting.IsResting(cell.name, Duration(15)));
  resting.Add(cell, Duration(20));
  resting.EndAll();
  EXPECT_FALSE(resting.IsResting(cell.name, Duration(21)));
  resting.Add(cell, Duration(30));
  resting.Forget(cell.name);
  EXPECT_FALSE(resting.IsResting(cell.name, Duration(31)));
}

TEST(RestingCellsTest, DoneJobsAreRememberedAfterTheRestForTheSameObservers) {
  RestingCells resting(10, kPeriod);
  const ColumnObservers observers = TwoObservers();
  QueuedCell cell = CellOf("r", observers);
  cell.jobs[1].done_at = Timestamp(7);
  resting.Add(cell, Duration(0));
  resting.EndAll();

  QueuedCell again = CellOf("r", observers);
  resting.Recall(&again);
  EXPECT_EQ(again.jobs[0].done_at, std::nullopt);
  EXPECT_EQ(again.jobs[1].done_at, Timestamp(7));

  QueuedCell with_others = CellOf("r", TwoObservers());
  resting.Recall(&with_others);
  EXPECT_EQ(with_others.jobs[1].done_at, std::nullopt);

  resting.Forget(cell.name);
  QueuedCell forgotten = CellOf("r", observers);
  resting.Recall(&forgotten);
  EXPECT_EQ(forgotten.jobs[1].done_at, std::nullopt);
}

TEST(RestingCellsTest, CellsAreReplacedOnlyAfterTheirRest) {
  RestingCells resting(2, kPeriod);
  const ColumnObservers observers = TwoObservers();
  resting.Add(CellOf("r1", observers), Duration(0));
  resting.Add(CellOf("r2", observers), Duration(5));
  resting.Add(CellOf("r3", observers), Duration(6));
  EXPECT_TRUE(resting.IsResting({"t", "r1", "c"}, Duration(7)));
  EXPECT_FALSE(resting.IsResting({"t", "r3", "c"}, Duration(7)));
  resting.Add(CellOf("r4", observers), Duration(10));
  EXPECT_TRUE(resting.IsResting({"t", "r2", "c"}, Duration(11)));
  EXPECT_TRUE(resting.IsResting({"t", "r4", "c"}, Duration(11)));
}

}  // namespace
}  // namespace percolator
