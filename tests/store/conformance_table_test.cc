// SPDX-License-Identifier: Apache-2.0

// Conformance: tables, Close, and the content of a store that is opened again.

#include <string>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<TableInfo> Tables(Store* store) {
  absl::StatusOr<std::vector<TableInfo>> tables = store->ListTables();
  EXPECT_THAT(tables, IsOk());
  return tables.ok() ? *tables : std::vector<TableInfo>();
}

TEST_P(StoreTest, TablesAreListedByNameWithTheirSchemas) {
  const std::string schema("\x00\xff any bytes\n", 13);
  ASSERT_THAT(store_->CreateTable({"zebra", ""}), IsOk());
  ASSERT_THAT(store_->CreateTable({"Alpha", schema}), IsOk());
  ASSERT_THAT(store_->CreateTable({"t-2", "x"}), IsOk());
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"Alpha", schema}, TableInfo{"t", ""}, TableInfo{"t-2", "x"},
                                                TableInfo{"zebra", ""}));
}

TEST_P(StoreTest, ATableIsCreatedOnce) {
  EXPECT_THAT(store_->CreateTable({"t", "other"}), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"t", ""}));
}

TEST_P(StoreTest, TableNamesFollowTheRule) {
  for (const std::string& name : {std::string("a"), std::string("AZaz09_-"), std::string(64, 'n')}) {
    EXPECT_THAT(store_->CreateTable({name, ""}), IsOk());
    EXPECT_THAT(store_->DropTable(name), IsOk());
  }
  for (const std::string& name : {std::string(), std::string(65, 'n'), std::string("a b"), std::string("a/b"),
                                  std::string("a.b"), std::string("\xc3\xa4"), std::string("a\0", 2)}) {
    EXPECT_THAT(store_->CreateTable({name, ""}), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"t", ""}));
}

TEST_P(StoreTest, ADroppedTableIsUnknownToEveryOperation) {
  ApplyRows({"r"});
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  EXPECT_THAT(Tables(store_.get()), IsEmpty());
  EXPECT_THAT(store_->Read({{"t", "r", Everything()}}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), Everything())), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Mutate("r", {Set("c", 1, "")}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->SampleRowKeys("t"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->DropTable("t"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StoreTest, AnUnknownTableCannotBeDropped) {
  EXPECT_THAT(store_->DropTable("nope"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->DropTable("not a name!"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->DropTable(""), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StoreTest, ATableCreatedAgainIsEmpty) {
  for (int round = 0; round < 3; ++round) {
    Apply("r", {Set("c", 1, "d"), Set("c", 1, "l", Family::kLock), Set("c", 1, "w", Family::kWrite),
                Set("c", 1, "n", Family::kNotify)});
    ASSERT_THAT(store_->DropTable("t"), IsOk());
    ASSERT_THAT(store_->CreateTable({"t", std::to_string(round)}), IsOk());
    EXPECT_EQ(Scan(), "");
    EXPECT_EQ(Read("r"), "");
    Apply("r", {Set("x", 1, "")},
          None({In("c", TimestampRange::All()), In("c", {}, Family::kLock), In("c", {}, Family::kWrite),
                In("c", {}, Family::kNotify)}));
    EXPECT_EQ(Scan(), "r{data:x@1=}");
    EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"t", std::to_string(round)}));
  }
}

TEST_P(StoreTest, DroppingATableLeavesTheOthers) {
  for (const char* table : {"s", "t1", "u"}) {
    ASSERT_THAT(store_->CreateTable({table, ""}), IsOk());
    ASSERT_THAT(store_->Mutate({{table, "r", {}, {Set("c", 1, table), Set("l", 1, table, Family::kLock)}}}).at(0),
                IsOk());
  }
  ApplyRows({"r"});
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  for (const char* table : {"s", "t1", "u"}) {
    absl::StatusOr<std::vector<Row>> rows = store_->Read({{table, "r", Everything()}});
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(ToText(*rows), std::string("r{data:c@1=") + table + " lock:l@1=" + table + "}");
  }
}

TEST_P(StoreTest, CallsAfterCloseFail) {
  ApplyRows({"r"});
  ASSERT_THAT(store_->Close(), IsOk());
  EXPECT_THAT(store_->Read({{"t", "r", Everything()}}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), Everything())), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->SampleRowKeys("t"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->CreateTable({"u", ""}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->DropTable("t"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->ListTables(), StatusIs(absl::StatusCode::kFailedPrecondition));
  const std::vector<absl::StatusOr<MutateResult>> results =
      store_->Mutate({{"t", "r", {}, {Set("c", 1, "")}}, {"t", "s", {}, {}}});
  ASSERT_EQ(results.size(), 2);
  for (const auto& result : results) EXPECT_THAT(result, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->Close(), IsOk()) << "closing twice is not an error";
}

TEST_P(StoreTest, MalformedCallsAfterCloseFailLikeOthers) {
  ASSERT_THAT(store_->Close(), IsOk());
  EXPECT_THAT(store_->Read({}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->Read({{"t", "", {}}}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->Scan(ScanOf(RowRange::All(), {}, 0)), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store_->CreateTable({"", ""}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Mutate("", {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(StoreReopenTest, AcknowledgedWritesSurviveClose) {
  ASSERT_THAT(store_->CreateTable({"u", "schema"}), IsOk());
  Apply("r", {Set("c", 1, "d"), Set("c", 2, ""), Set("c", 1, "l", Family::kLock), Set("c", 1, "w", Family::kWrite),
              Set("c", 1, "n", Family::kNotify), Set("gone", 1, "")});
  Apply("r", {EraseAt("gone", 1)});
  ApplyRows(NastyStrings());
  const std::string before = Scan();
  ASSERT_THAT(store_->Close(), IsOk());
  Open({});
  EXPECT_EQ(Scan(), before);
  EXPECT_EQ(Read("r"), "data:c@2= data:c@1=d lock:c@1=l write:c@1=w notify:c@1=n");
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"t", ""}, TableInfo{"u", "schema"}));
  Apply("r", {Set("more", 1, "")}, All({At("c", 1, Family::kLock)}));
}

TEST_P(StoreReopenTest, TheDestructorCloses) {
  ApplyRows({"r"});
  Open({});
  EXPECT_EQ(Scan(), "r{data:c@1=r}");
}

TEST_P(StoreReopenTest, DroppedTablesStayDropped) {
  ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
  ApplyRows({"r"});
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  Open({});
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"u", ""}));
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  Open({});
  EXPECT_EQ(Scan(), "");
  EXPECT_THAT(Tables(store_.get()), ElementsAre(TableInfo{"t", ""}, TableInfo{"u", ""}));
}

}  // namespace
}  // namespace percolator
