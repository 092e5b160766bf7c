// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/lock_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/store/rocks/cell_key.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LockTableTest, KeepsVersionsNewestFirst) {
  LockTable locks;
  for (uint64_t ts : {5, 9, 7}) locks.Set("cell", Timestamp(ts), "v");
  EXPECT_THAT(locks.Timestamps("cell", TimestampRange::All()), ElementsAre(Timestamp(9), Timestamp(7), Timestamp(5)));
  EXPECT_THAT(locks.Timestamps("cell", {Timestamp(5), Timestamp(9)}), ElementsAre(Timestamp(7), Timestamp(5)));
  EXPECT_THAT(locks.Timestamps("other", TimestampRange::All()), IsEmpty());
}

// Returns the prefix of a cell in column c.
std::string CellOfC() { return CellPrefix(RowPrefix(1, "row"), "c"); }

TEST(LockTableTest, SetAtTheSameTimestampReplaces) {
  LockTable locks;
  locks.Set(CellOfC(), Timestamp(5), "old");
  locks.Set(CellOfC(), Timestamp(5), "new");
  std::vector<Cell> cells;
  locks.Select(CellOfC(), Selector{Family::kLock, "c"}, &cells);
  EXPECT_THAT(cells, ElementsAre(Cell{Family::kLock, "c", Timestamp(5), "new"}));
}

TEST(LockTableTest, SelectTakesTheNewestOfTheRange) {
  LockTable locks;
  for (uint64_t ts : {5, 7, 9}) locks.Set(CellOfC(), Timestamp(ts), std::to_string(ts));
  std::vector<Cell> cells;
  locks.Select(CellOfC(), Selector{Family::kLock, "c", TimestampRange::UpTo(Timestamp(8)), 1}, &cells);
  EXPECT_THAT(cells, ElementsAre(Cell{Family::kLock, "c", Timestamp(7), "7"}));
}

TEST(LockTableTest, EraseRemovesOnlyTheRange) {
  LockTable locks;
  for (uint64_t ts : {5, 7, 9}) locks.Set("cell", Timestamp(ts), "v");
  locks.Erase("cell", TimestampRange::Exactly(Timestamp(7)));
  EXPECT_FALSE(locks.Exists("cell", TimestampRange::Exactly(Timestamp(7))));
  EXPECT_TRUE(locks.Exists("cell", TimestampRange::Exactly(Timestamp(9))));
  locks.Erase("cell", TimestampRange::All());
  EXPECT_FALSE(locks.Exists("cell", TimestampRange::All()));
}

TEST(LockTableTest, EraseTableLeavesOtherTables) {
  LockTable locks;
  locks.Set("t1cell", Timestamp(5), "v");
  locks.Set("t2cell", Timestamp(5), "v");
  locks.EraseTable("t1");
  EXPECT_FALSE(locks.Exists("t1cell", TimestampRange::All()));
  EXPECT_TRUE(locks.Exists("t2cell", TimestampRange::All()));
}

}  // namespace
}  // namespace percolator
