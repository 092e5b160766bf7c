// SPDX-License-Identifier: Apache-2.0

#include "src/inspect/check_cells.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

const std::string kLongValue(kInlineBytes + 1, 'v');

std::string PutRecord(uint64_t start, std::optional<std::string> value = "v") {
  return EncodeWriteRecord({WriteKind::kPut, Timestamp(start), {}, std::move(value)});
}

Cell CellAt(Family family, std::string column, uint64_t ts, std::string value) {
  return {family, std::move(column), Timestamp(ts), std::move(value)};
}

// Returns the kinds of the bad cells, in the order of the cells.
std::string Verdicts(std::vector<Cell> cells) {
  std::string text;
  for (const BadCell& bad : CheckRow("t", {"r", std::move(cells)})) {
    EXPECT_EQ(bad.cell.table, "t");
    EXPECT_EQ(bad.cell.row, "r");
    EXPECT_FALSE(bad.why.empty());
    text += StrCat(text.empty() ? "" : " ", bad.timestamp.ToString(), ":", BadCellKindName(bad.kind));
  }
  return text;
}

TEST(CheckCellsTest, AcceptsTheCellsOfTransactionsAndObservers) {
  EXPECT_EQ(Verdicts({}), "");
  EXPECT_EQ(
      Verdicts(
          {CellAt(Family::kData, "c", 5, kLongValue), CellAt(Family::kData, "c", 9, kLongValue),
           CellAt(Family::kLock, "c", 9, EncodeLock({})), CellAt(Family::kWrite, "c", 6, PutRecord(5, std::nullopt)),
           CellAt(Family::kWrite, "d", 6, EncodeWriteRecord({WriteKind::kDelete, Timestamp(5), {}, {}})),
           CellAt(Family::kWrite, AckColumn("c", "o"), 8, PutRecord(7, std::string(8, 'x'))),
           CellAt(Family::kWrite, AckColumn("d", "o"), 8, PutRecord(7, "")),
           CellAt(Family::kWrite, RollbackColumn(), 4, EncodeWriteRecord({WriteKind::kRollback, Timestamp(4), {}, {}})),
           CellAt(Family::kNotify, "c", 6, EncodeMark({})),
           CellAt(Family::kNotify, PendingColumn("c"), 9, EncodeMark({.depth = 3}))}),
      "");
}

TEST(CheckCellsTest, BytesThatAreNotARecordAreDamaged) {
  EXPECT_EQ(Verdicts({CellAt(Family::kLock, "c", 1, "garbage"), CellAt(Family::kWrite, "c", 2, ""),
                      CellAt(Family::kNotify, "c", 3, "\x01"),
                      CellAt(Family::kWrite, AckColumn("c", "o"), 4, PutRecord(3, "three")),
                      CellAt(Family::kWrite, AckColumn("c", "o"), 5, PutRecord(3, std::nullopt)),
                      CellAt(Family::kWrite, RollbackColumn(), 6, "rollback"), CellAt(Family::kData, "c", 7, "any")}),
            "1:damaged 2:damaged 3:damaged 4:damaged 5:damaged 6:damaged");
}

TEST(CheckCellsTest, ANewerFormatIsNotDamage) {
  EXPECT_EQ(Verdicts({CellAt(Family::kLock, "c", 1, "\x02"), CellAt(Family::kWrite, "c", 2, "\x0f"),
                      CellAt(Family::kNotify, "c", 3, "\x10")}),
            "1:newer-format 2:newer-format 3:damaged");
}

TEST(CheckCellsTest, ALongValueMustExistInTheFamilyData) {
  EXPECT_EQ(Verdicts({CellAt(Family::kData, "c", 4, kLongValue), CellAt(Family::kData, "d", 5, kLongValue),
                      CellAt(Family::kLock, "c", 9, EncodeLock({})),
                      CellAt(Family::kWrite, "c", 6, PutRecord(5, std::nullopt))}),
            "9:missing-data 6:missing-data");
}

TEST(CheckCellsTest, ReservedColumnsBelongInTheirFamilies) {
  const std::string unknown("\0nobody", 7);
  const std::string broken_ack("\0ackc", 5);
  const std::string marker = EncodeWriteRecord({WriteKind::kRollback, Timestamp(4), {}, {}});
  EXPECT_EQ(
      Verdicts({CellAt(Family::kData, unknown, 1, "v"), CellAt(Family::kLock, unknown, 2, EncodeLock({.value = "v"})),
                CellAt(Family::kLock, RollbackColumn(), 3, EncodeLock({.value = "v"})),
                CellAt(Family::kWrite, broken_ack, 4, PutRecord(3)),
                CellAt(Family::kWrite, PendingColumn("c"), 5, PutRecord(3)),
                CellAt(Family::kNotify, AckColumn("c", "o"), 6, EncodeMark({})), CellAt(Family::kWrite, "c", 7, marker),
                CellAt(Family::kWrite, RollbackColumn(), 8, PutRecord(3))}),
      "1:misplaced 2:misplaced 3:misplaced 4:misplaced 5:misplaced 6:misplaced 7:misplaced 8:misplaced");
}

TEST(CheckCellsTest, ACommitBeforeItsStartIsImpossible) {
  EXPECT_EQ(Verdicts({CellAt(Family::kWrite, "c", 7, PutRecord(7)), CellAt(Family::kWrite, "c", 6, PutRecord(5))}),
            "7:impossible");
}

}  // namespace
}  // namespace percolator
