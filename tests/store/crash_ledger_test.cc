// SPDX-License-Identifier: Apache-2.0

// The ledger has to find errors, otherwise the tests that rely on it show nothing: each test damages a good store.

#include "tests/store/crash_ledger.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Expect = CrashLedger::Expect;

constexpr uint64_t kSteps = 200;

class CrashLedgerTest : public ::testing::Test {
 protected:
  CrashLedgerTest() { EXPECT_THAT(CreateCrashTables(store_.get()), IsOk()); }

  CrashListener Listener(uint64_t last_step) {
    CrashListener listener;
    listener.sending = [this](uint32_t writer, uint64_t step) { ledger_.Sending(writer, step); };
    listener.done = [this, last_step](const CrashReport& report, const absl::Status& error) {
      EXPECT_THAT(error, IsOk());
      ledger_.Done(report);
      return report.step < last_step;
    };
    return listener;
  }
  void Write(uint32_t writer, uint64_t last_step) {
    RunCrashWriter(store_.get(), plan_, writer, ledger_.NextStep(writer), Listener(last_step));
  }
  void WriteAll() {
    for (uint32_t writer = 0; writer < plan_.writers; ++writer) Write(writer, kSteps);
  }
  std::vector<std::string> Check(Expect expect = Expect::kNothingLost) { return ledger_.Check(store_.get(), expect); }

  // A step of the wanted kind, after the last one of `writer`.
  uint64_t NextBatchStep(uint32_t writer, bool joint = false) {
    for (uint64_t number = ledger_.NextStep(writer);; ++number) {
      const CrashStep step = MakeCrashStep(plan_, writer, number);
      if (step.mutations.size() >= 2 && step.is_joint == joint) return number;
    }
  }
  Row AnyRow(const std::string& table) {
    ScanRequest request{.table = table};
    for (int family = 0; family < kFamilyCount; ++family) request.selectors.push_back({static_cast<Family>(family)});
    return store_->Scan(request)->rows.front();
  }
  void Change(const std::string& table, const std::string& row, Mutation mutation) {
    EXPECT_THAT(store_->Mutate({{table, row, {}, {std::move(mutation)}}})[0], IsOk());
  }

  const CrashPlan plan_{.seed = 7, .writers = 2};
  std::unique_ptr<Store> store_ = NewMemoryStore();
  CrashLedger ledger_{plan_};
};

TEST_F(CrashLedgerTest, GoodStoreHasNoProblems) {
  WriteAll();
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(Expect::kPrefix), IsEmpty());
  EXPECT_GT(ledger_.acknowledged(), kSteps);
}

TEST_F(CrashLedgerTest, LostCellIsFound) {
  WriteAll();
  const Row row = AnyRow("alpha");
  const Cell& cell = row.cells.front();
  Change("alpha", row.key, Mutation::Erase(cell.family, cell.column, TimestampRange::Exactly(cell.timestamp)));
  EXPECT_THAT(Check(), Contains(HasSubstr("missing")));
  EXPECT_THAT(Check(Expect::kPrefix), Contains(HasSubstr("missing")));
}

TEST_F(CrashLedgerTest, ChangedValueIsFound) {
  WriteAll();
  const Row row = AnyRow("beta");
  const Cell& cell = row.cells.back();
  Change("beta", row.key, Mutation::Set(cell.family, cell.column, cell.timestamp, "other"));
  EXPECT_THAT(Check(), Contains(HasSubstr("unexpected")));
}

TEST_F(CrashLedgerTest, CellThatWasNeverSentIsFound) {
  WriteAll();
  Change("alpha", CrashRowKey(0, 0), Mutation::Set(Family::kData, "c0", Timestamp(kSteps + 1), "x"));
  EXPECT_THAT(Check(), Contains(HasSubstr("unexpected")));
}

TEST_F(CrashLedgerTest, RowThatWasNeverSentIsFound) {
  WriteAll();
  Change("alpha", "stranger", Mutation::Set(Family::kData, "c0", Timestamp(1), "x"));
  EXPECT_THAT(Check(), Contains(HasSubstr("never written")));
}

TEST_F(CrashLedgerTest, StepWithoutAnswerMayBeAppliedOrNot) {
  WriteAll();
  const uint64_t step = NextBatchStep(0);
  ledger_.Sending(0, step);
  EXPECT_THAT(Check(), IsEmpty());
  for (const RowMutation& mutation : MakeCrashStep(plan_, 0, step).mutations) {
    EXPECT_THAT(store_->Mutate({mutation})[0], IsOk());
    EXPECT_THAT(Check(), IsEmpty());
  }
}

TEST_F(CrashLedgerTest, HalfAppliedMutationIsFound) {
  WriteAll();
  const uint64_t step = NextBatchStep(0);
  ledger_.Sending(0, step);
  RowMutation mutation = MakeCrashStep(plan_, 0, step).mutations[0];
  mutation.condition = {};
  mutation.mutations = {mutation.mutations.back()};
  EXPECT_THAT(store_->Mutate({mutation})[0], IsOk());
  EXPECT_THAT(Check(), Contains(HasSubstr("is in none of")));
  EXPECT_THAT(Check(Expect::kPrefix), Contains(HasSubstr("is in none of")));
}

TEST_F(CrashLedgerTest, JointStepWithoutAnswerIsInAllItsRowsOrInNone) {
  WriteAll();
  uint64_t number = NextBatchStep(0, /*joint=*/true);
  const auto conditional = [](const RowMutation& m) { return !m.condition.cells.empty(); };
  CrashStep step = MakeCrashStep(plan_, 0, number);
  while (std::any_of(step.mutations.begin(), step.mutations.end(), conditional)) {
    ledger_.Sending(0, number);
    number = NextBatchStep(0, /*joint=*/true);
    step = MakeCrashStep(plan_, 0, number);
  }
  ledger_.Sending(0, number);
  EXPECT_THAT(Check(), IsEmpty());
  for (size_t i = 0; i < step.mutations.size(); ++i) {
    EXPECT_THAT(store_->Mutate({step.mutations[i]})[0], IsOk());
    const bool whole = i + 1 == step.mutations.size();
    for (const Expect expect : {Expect::kNothingLost, Expect::kPrefix}) {
      if (whole) {
        EXPECT_THAT(Check(expect), IsEmpty());
      } else {
        EXPECT_THAT(Check(expect), Contains(HasSubstr("joint step")));
      }
    }
  }
}

TEST_F(CrashLedgerTest, AcknowledgedStepThatIsMissingIsALossButStillAPrefix) {
  WriteAll();
  const uint64_t step = NextBatchStep(0);
  ledger_.Sending(0, step);
  CrashReport report{.writer = 0, .step = step};
  report.count = static_cast<uint8_t>(MakeCrashStep(plan_, 0, step).mutations.size());
  ledger_.Done(report);
  EXPECT_THAT(Check(), Contains(::testing::AnyOf(HasSubstr("missing"), HasSubstr("contradicts"))));
  EXPECT_THAT(Check(Expect::kPrefix), IsEmpty());
}

TEST_F(CrashLedgerTest, LossBeforeAKeptStepIsNotAPrefix) {
  const uint64_t step = NextBatchStep(0);
  ledger_.Sending(0, step);
  CrashReport report{.writer = 0, .step = step};
  report.count = 1;
  ledger_.Done(report);
  Write(1, kSteps);
  EXPECT_THAT(Check(Expect::kPrefix), Contains(HasSubstr("is lost, though step")));
}

TEST_F(CrashLedgerTest, LostIncrementIsFound) {
  WriteAll();
  const Row row = AnyRow(kCounterTable);
  const TimestampRange newest = TimestampRange::Exactly(row.cells.front().timestamp);
  Change(kCounterTable, row.key, Mutation::Erase(Family::kData, kCounterColumn, newest));
  EXPECT_THAT(Check(), Contains(HasSubstr("incomplete")));
  Change(kCounterTable, row.key, Mutation::Erase(Family::kWrite, kCounterColumn, newest));
  EXPECT_THAT(Check(), Contains(HasSubstr("acknowledged and is lost")));
}

TEST_F(CrashLedgerTest, IncrementThatWasNeverSentIsFound) {
  WriteAll();
  const Row row = AnyRow(kCounterTable);
  const uint64_t next = row.cells.front().timestamp.value() + 1;
  EXPECT_THAT(store_->Mutate({CounterIncrement(row.key, next, 0, kSteps + 5)})[0], IsOk());
  EXPECT_THAT(Check(), Contains(HasSubstr("no writer wrote")));
}

TEST_F(CrashLedgerTest, VerifiedContentHasToStay) {
  WriteAll();
  ASSERT_THAT(ledger_.Verify(store_.get(), Expect::kNothingLost), IsEmpty());
  const Row row = AnyRow("alpha");
  const Cell& cell = row.cells.front();
  Change("alpha", row.key, Mutation::Erase(cell.family, cell.column, TimestampRange::Exactly(cell.timestamp)));
  EXPECT_THAT(Check(Expect::kPrefix), Contains(HasSubstr("missing")));
}

}  // namespace
}  // namespace percolator
