// SPDX-License-Identifier: Apache-2.0

// Conformance: Mutate. Effects and their order, conditions, batches.

#include <string>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

RowMutation Entry(std::string row, std::vector<Mutation> mutations, Condition condition = {}, std::string table = "t") {
  return {std::move(table), std::move(row), std::move(condition), std::move(mutations)};
}

// "applied", "failed" or the code of the error, for each entry.
std::vector<std::string> Outcomes(const std::vector<absl::StatusOr<MutateResult>>& results) {
  std::vector<std::string> outcomes;
  for (const absl::StatusOr<MutateResult>& result : results) {
    outcomes.push_back(!result.ok()                                ? absl::StatusCodeToString(result.status().code())
                       : *result == MutateResult::kApplied         ? "applied"
                       : *result == MutateResult::kConditionFailed ? "failed"
                                                                   : "?");
  }
  return outcomes;
}

TEST_P(StoreTest, MutationsWithDrawnTimestampsApplyLikeOthers) {
  const std::vector<DrawnResult> results =
      store_->MutateThenDraw({Entry("a", {Set("c", 1, "x")}), Entry("a", {Set("c", 2, "y")}, None({At("c", 1)})),
                              Entry("b", {Set("c", 1, "z")}), Entry("b", {Set("c", 1, "")}, {}, "nowhere")});
  std::vector<absl::StatusOr<MutateResult>> outcomes;
  for (const DrawnResult& result : results) {
    outcomes.push_back(result.result);
    const bool applied = result.result.ok() && *result.result == MutateResult::kApplied;
    EXPECT_TRUE(applied || !result.drawn.has_value());
  }
  EXPECT_THAT(Outcomes(outcomes), ElementsAre("applied", "failed", "applied", "NOT_FOUND"));
  EXPECT_EQ(Scan(), "a{data:c@1=x} b{data:c@1=z}");
  EXPECT_THAT(store_->MutateThenDraw({}), ::testing::IsEmpty());
}

TEST_P(StoreTest, MutationsOfARowApplyInTheirOrder) {
  Apply("r", {Set("c", 1, "before")});
  Apply("r", {Set("c", 2, "x"), Erase("c", TimestampRange::All())});
  EXPECT_EQ(Read("r"), "") << "set, then erase";
  Apply("r", {Erase("c", TimestampRange::All()), Set("c", 2, "y")});
  EXPECT_EQ(Read("r"), "data:c@2=y") << "erase, then set";
  Apply("r", {Set("c", 2, "first"), Set("c", 2, "second")});
  EXPECT_EQ(Read("r"), "data:c@2=second") << "set twice";
  Apply("r", {EraseAt("c", 2), Set("c", 2, "a"), EraseAt("c", 2), Set("c", 3, "b"), Set("c", 4, "c"),
              Erase("c", Between(3, 4)), Set("c", 1, "d")});
  EXPECT_EQ(Read("r"), "data:c@4=c data:c@1=d") << "all mixed";
}

TEST_P(StoreTest, AnEraseSeesTheSetsBeforeItInOtherColumnsUntouched) {
  Apply("r", {Set("a", 1, ""), Set("b", 1, ""), Erase("a", TimestampRange::All()), Set("c", 1, "")});
  EXPECT_EQ(Read("r"), "data:b@1= data:c@1=");
}

TEST_P(StoreTest, EraseRemovesExactlyItsRange) {
  auto fill = [&] {
    Apply("r", {Set("c", 1, ""), Set("c", 2, ""), Set("c", 3, ""), Set("c", 4, ""), Set("d", 2, "")});
  };
  fill();
  Apply("r", {EraseAt("c", 2)});
  EXPECT_EQ(Read("r"), "data:c@4= data:c@3= data:c@1= data:d@2=");
  fill();
  Apply("r", {Erase("c", Between(2, 4))});
  EXPECT_EQ(Read("r"), "data:c@4= data:c@1= data:d@2=");
  fill();
  Apply("r", {Erase("c", TimestampRange::UpTo(Timestamp(3)))});
  EXPECT_EQ(Read("r"), "data:c@4= data:d@2=");
  fill();
  Apply("r", {Erase("c", TimestampRange::From(Timestamp(2)))});
  EXPECT_EQ(Read("r"), "data:c@1= data:d@2=");
  fill();
  Apply("r", {Erase("c", TimestampRange::All())});
  EXPECT_EQ(Read("r"), "data:d@2=");
}

TEST_P(StoreTest, EraseOfNothingIsNotAnError) {
  Apply("r", {EraseAt("c", 1), Erase("c", TimestampRange::All(), Family::kWrite)});
  Apply("r", {Set("c", 2, ""), Set("c", 3, "")});
  Apply("r", {EraseAt("c", 1), Erase("c", Between(3, 3)), Erase("c", Between(9, 2)), EraseAt("d", 2)});
  EXPECT_EQ(Read("r"), "data:c@3= data:c@2=");
}

TEST_P(StoreTest, EraseOfAColumnLeavesItsNeighbours) {
  const std::string zero(1, '\0');
  Apply("r", {Set("c", 1, ""), Set("c" + zero, 1, ""), Set("", 1, ""), Set("cc", 1, ""), Set("b\xff", 1, "")});
  Apply("ra", {Set("c", 1, "")});
  Apply("r", {Erase("c", TimestampRange::All())});
  EXPECT_EQ(Read("r"), "data:@1= data:b\\xff@1= data:c\\x00@1= data:cc@1=");
  EXPECT_EQ(Read("ra"), "data:c@1=");
}

TEST_P(StoreTest, ARowWithoutCellsIsGone) {
  ApplyRows({"a", "b", "c"});
  Apply("b", {Erase("c", TimestampRange::All())});
  EXPECT_THAT(ScanKeys(), ElementsAre("a", "c"));
  EXPECT_EQ(Read("b"), "");
}

TEST_P(StoreTest, ErasedVersionsCanBeAddedAgain) {
  for (int round = 0; round < 3; ++round) {
    const std::string value = "v" + std::to_string(round);
    Apply("r", {Set("c", 1, value), Set("c", 2, value)}, None({In("c", TimestampRange::All())}));
    EXPECT_EQ(Read("r"), "data:c@2=" + value + " data:c@1=" + value);
    Apply("r", {EraseAt("c", 1)});
    Apply("r", {Set("c", 1, "again")}, None({At("c", 1)}));
    EXPECT_EQ(Read("r"), "data:c@2=" + value + " data:c@1=again");
    Apply("r", {Erase("c", TimestampRange::All())});
    EXPECT_EQ(Read("r"), "");
  }
}

TEST_P(StoreTest, ConditionsCountTheirExistingCells) {
  Apply("r", {Set("a", 5, ""), Set("b", 5, "")});
  struct Case {
    std::vector<CellRange> cells;
    bool none, any, all;
  };
  const std::vector<Case> cases = {
      {{}, true, true, true},
      {{At("a", 5)}, false, true, true},
      {{At("x", 5)}, true, false, false},
      {{At("a", 5), At("b", 5)}, false, true, true},
      {{At("a", 5), At("x", 5)}, false, true, false},
      {{At("x", 5), At("b", 5)}, false, true, false},
      {{At("x", 5), At("y", 5)}, true, false, false},
      {{At("a", 5), At("a", 5)}, false, true, true},
  };
  for (const Case& c : cases) {
    const auto held = [&](Condition condition) {
      return Outcomes(store_->Mutate({Entry("r", {}, std::move(condition))}))[0] == "applied";
    };
    EXPECT_EQ(held(None(c.cells)), c.none) << &c - cases.data();
    EXPECT_EQ(held(Any(c.cells)), c.any) << &c - cases.data();
    EXPECT_EQ(held(All(c.cells)), c.all) << &c - cases.data();
  }
}

TEST_P(StoreTest, AConditionCellExistsIfAVersionIsInItsRange) {
  Apply("r", {Set("c", 3, ""), Set("c", 6, ""), Set("c", 3, "", Family::kLock)});
  const auto exists = [&](CellRange cell) {
    return Outcomes(store_->Mutate({Entry("r", {}, All({std::move(cell)}))}))[0] == "applied";
  };
  EXPECT_TRUE(exists(In("c", TimestampRange::All())));
  EXPECT_TRUE(exists(In("c", Between(3, 4))));
  EXPECT_FALSE(exists(In("c", Between(0, 3))));
  EXPECT_FALSE(exists(In("c", Between(4, 6)))) << "between two versions";
  EXPECT_TRUE(exists(In("c", Between(4, 7))));
  EXPECT_FALSE(exists(In("c", TimestampRange::From(Timestamp(7)))));
  EXPECT_TRUE(exists(In("c", TimestampRange::From(Timestamp(6)))));
  EXPECT_TRUE(exists(In("c", TimestampRange::UpTo(Timestamp(3)))));
  EXPECT_FALSE(exists(In("c", Between(3, 3)))) << "empty range";
  EXPECT_FALSE(exists(In("c", Between(6, 3)))) << "inverted range";
  EXPECT_FALSE(exists(At("", 3)));
  EXPECT_FALSE(exists(At("c ", 3)));
  EXPECT_TRUE(exists(At("c", 3, Family::kLock)));
  EXPECT_FALSE(exists(At("c", 6, Family::kLock)));
  EXPECT_FALSE(exists(In("c", TimestampRange::All(), Family::kWrite)));
}

TEST_P(StoreTest, AConditionOnlySeesItsRow) {
  Apply("a", {Set("c", 1, "")});
  Apply("ab", {Set("c", 1, "")});
  const std::string zero(1, '\0');
  for (const std::string& row : {std::string("b"), std::string("aa"), "a" + zero}) {
    Apply(row, {Set("d", 1, "")}, None({In("c", TimestampRange::All())}));
  }
}

TEST_P(StoreTest, AFailedConditionChangesNothing) {
  Apply("r", {Set("c", 1, "old")});
  absl::StatusOr<MutateResult> result = Mutate(
      "r", {Set("c", 1, "new"), Set("d", 1, "", Family::kLock), Erase("c", TimestampRange::All())}, None({At("c", 1)}));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*result, MutateResult::kConditionFailed);
  EXPECT_EQ(Read("r"), "data:c@1=old");
  result = Mutate("missing", {Set("c", 1, "new")}, Any({At("c", 1)}));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*result, MutateResult::kConditionFailed);
  EXPECT_EQ(Scan(), "r{data:c@1=old}");
}

TEST_P(StoreTest, AConditionRefersToTheRowBeforeTheMutation) {
  Apply("r", {Set("c", 1, "")}, None({At("c", 1)}));
  Apply("r", {EraseAt("c", 1), Set("d", 1, "")}, All({At("c", 1)}));
  EXPECT_EQ(Read("r"), "data:d@1=");
}

TEST_P(StoreTest, ARowMutationWithoutEffectsStillAnswersItsCondition) {
  ApplyRows({"r"});
  EXPECT_THAT(Outcomes(store_->Mutate({Entry("r", {}), Entry("r", {}, All({At("c", 1)})),
                                       Entry("r", {}, None({At("c", 1)})), Entry("new", {})})),
              ElementsAre("applied", "applied", "failed", "applied"));
  EXPECT_THAT(ScanKeys(), ElementsAre("r"));
}

TEST_P(StoreTest, EntriesForOneRowAreEvaluatedInTheirOrder) {
  EXPECT_THAT(Outcomes(store_->Mutate({
                  Entry("r", {Set("c", 1, "a")}, None({At("c", 1)})),
                  Entry("other", {Set("c", 1, "x")}),
                  Entry("r", {Set("c", 1, "b")}, None({At("c", 1)})),
                  Entry("r", {Set("c", 2, "c")}, All({At("c", 1)})),
                  Entry("r", {EraseAt("c", 1)}, All({At("c", 1), At("c", 2)})),
                  Entry("r", {Set("c", 1, "d")}, None({At("c", 1)})),
                  Entry("r", {Set("c", 2, "e")}),
              })),
              ElementsAre("applied", "applied", "failed", "applied", "applied", "applied", "applied"));
  EXPECT_EQ(Scan(), "other{data:c@1=x} r{data:c@2=e data:c@1=d}");
}

TEST_P(StoreTest, ABatchMayHoldManyEntriesForOneRow) {
  std::vector<RowMutation> batch;
  for (uint64_t ts = 1; ts <= 500; ++ts) {
    batch.push_back(Entry("r", {EraseAt("c", ts - 1), Set("c", ts, "")}, ts == 1 ? None({}) : All({At("c", ts - 1)})));
  }
  for (const std::string& outcome : Outcomes(store_->Mutate(batch))) ASSERT_EQ(outcome, "applied");
  EXPECT_EQ(Read("r"), "data:c@500=");
}

TEST_P(StoreTest, EntriesFailOneByOne) {
  const std::string long_key(StoreLimits().max_row_key_bytes + 1, 'k');
  EXPECT_THAT(Outcomes(store_->Mutate({
                  Entry("a", {Set("c", 1, "a")}),
                  Entry("b", {Set("c", 1, "b")}, {}, "nope"),
                  Entry("c", {Set("c", 1, "c")}),
                  Entry(long_key, {Set("c", 1, "d")}),
                  Entry("", {Set("c", 1, "e")}),
                  Entry("d", {Set("c", 1, "f")}, All({At("c", 1)})),
                  Entry("e", {Set("c", 1, "ok"), Set("c", Timestamp::Infinity().value(), "g")}),
                  Entry("a", {Set("d", 1, "h")}, All({At("c", 1)})),
              })),
              ElementsAre("applied", "NOT_FOUND", "applied", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "failed",
                          "INVALID_ARGUMENT", "applied"));
  EXPECT_EQ(Scan(), "a{data:c@1=a data:d@1=h} c{data:c@1=c}");
}

TEST_P(StoreTest, ABatchOfOnlyBadEntriesHasAResultForEach) {
  EXPECT_THAT(Outcomes(store_->Mutate({Entry("a", {}, {}, "nope"), Entry("", {}), Entry("a", {}, {}, "")})),
              ElementsAre("NOT_FOUND", "INVALID_ARGUMENT", "NOT_FOUND"));
}

TEST_P(StoreTest, ASetNeedsExactlyOneFiniteTimestamp) {
  EXPECT_THAT(Mutate("r", {Set("c", Timestamp::Infinity().value(), "")}), StatusIs(absl::StatusCode::kInvalidArgument));
  Mutation wide = Set("c", 1, "");
  wide.range = Between(1, 3);
  EXPECT_THAT(Mutate("r", {wide}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Scan(), "");
}

TEST_P(StoreTest, ABatchMayTouchSeveralTables) {
  ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
  EXPECT_THAT(Outcomes(store_->Mutate({
                  Entry("r", {Set("c", 1, "in t")}),
                  Entry("r", {Set("c", 1, "in u")}, None({At("c", 1)}), "u"),
                  Entry("r", {Set("d", 1, "in u")}, All({At("c", 1)}), "u"),
              })),
              ElementsAre("applied", "applied", "applied"));
  EXPECT_EQ(Read("r"), "data:c@1=in t");
  absl::StatusOr<std::vector<Row>> rows = store_->Read({{"u", "r", Everything()}});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(ToText(*rows), "r{data:c@1=in u data:d@1=in u}");
}

// Figure 6 of the paper as the store sees it.
TEST_P(StoreTest, PrewriteCommitAndRollbackMoveLocksAtomically) {
  const auto prewrite = [&](uint64_t start) {
    return Outcomes(
        store_->Mutate({Entry("r", {Set("c", start, "value", Family::kData), Set("c", start, "primary", Family::kLock)},
                              None({In("c", TimestampRange::All(), Family::kLock),
                                    In("c", TimestampRange::From(Timestamp(start)), Family::kWrite)}))}))[0];
  };
  const auto commit = [&](uint64_t start, uint64_t at) {
    return Outcomes(store_->Mutate(
        {Entry("r", {EraseAt("c", start, Family::kLock), Set("c", at, std::to_string(start), Family::kWrite)},
               All({At("c", start, Family::kLock)}))}))[0];
  };
  EXPECT_EQ(prewrite(10), "applied");
  EXPECT_EQ(prewrite(11), "failed") << "locked";
  EXPECT_EQ(commit(11, 20), "failed") << "not its lock";
  EXPECT_EQ(commit(10, 20), "applied");
  EXPECT_EQ(commit(10, 21), "failed") << "already committed";
  EXPECT_EQ(prewrite(15), "failed") << "a newer write";
  EXPECT_EQ(prewrite(20), "failed") << "a write at the very start";
  EXPECT_EQ(prewrite(21), "applied");
  EXPECT_EQ(Read("r"), "data:c@21=value data:c@10=value lock:c@21=primary write:c@20=10");
  Apply("r", {EraseAt("c", 21, Family::kLock), EraseAt("c", 21)}, All({At("c", 21, Family::kLock)}));
  EXPECT_EQ(Read("r"), "data:c@10=value write:c@20=10");
}

}  // namespace
}  // namespace percolator
