// SPDX-License-Identifier: Apache-2.0

// Conformance: MutateTogether, on the stores that support it.

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/test_oracle.h"
#include "tests/store/conformance.h"

namespace percolator {
namespace {

constexpr uint64_t kAtCommit = JointMutation::AtCommit().value();

// Long enough for a call that does not wait to return.
constexpr std::chrono::milliseconds kWhile(50);

class TogetherTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (!HasFatalFailure() && !IsSkipped() && !store_->CanMutateTogether())
      GTEST_SKIP() << "this store does not support it";
  }

  static RowMutation Change(std::string row, std::vector<Mutation> mutations, Condition condition = {},
                            std::string table = "t") {
    return {std::move(table), std::move(row), std::move(condition), std::move(mutations)};
  }

  // Runs the mutations with a new start timestamp.
  absl::StatusOr<JointResult> Together(std::vector<RowMutation> rows) {
    JointMutation mutation{oracle_.GetTimestamp().value(), std::move(rows)};
    return store_->MutateTogether(mutation, &oracle_);
  }

  // As Together, and expects that they are applied. Returns the drawn timestamp.
  uint64_t ApplyTogether(std::vector<RowMutation> rows) {
    const absl::StatusOr<JointResult> result = Together(std::move(rows));
    EXPECT_THAT(result, IsOk());
    if (!result.ok()) return 0;
    EXPECT_TRUE(result->applied) << "row " << result->failed_row << " failed";
    return result->timestamp.value();
  }

  TestOracle oracle_{1001};
};

class TogetherReopenTest : public TogetherTest {};
class TogetherLimitsTest : public TogetherTest {};

TEST_P(TogetherTest, RowsChangeAtTheTimestampThatIsDrawn) {
  ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
  Apply("a", {Set("old", 3, "")});
  const std::string c = std::to_string(
      ApplyTogether({Change("a", {Set("c", kAtCommit, "1"), Set("c", 7, "fixed"), EraseAt("old", 3)}),
                     Change("b", {Set("c", kAtCommit, "2", Family::kWrite), Set("d", kAtCommit, "3", Family::kNotify)}),
                     Change("a", {Set("c", kAtCommit, "in u")}, {}, "u")}));
  EXPECT_EQ(c, std::to_string(oracle_.last().value())) << "one timestamp for everything, drawn after the start";
  EXPECT_EQ(Scan(), "a{data:c@" + c + "=1 data:c@7=fixed} b{write:c@" + c + "=2 notify:d@" + c + "=3}");
  const auto in_u = store_->Read({{"u", "a", Everything()}});
  ASSERT_THAT(in_u, IsOk());
  EXPECT_EQ(ToText(*in_u), "a{data:c@" + c + "=in u}");
}

TEST_P(TogetherTest, MutationsOfARowApplyInTheirOrder) {
  const uint64_t first = ApplyTogether({Change("r", {Set("c", kAtCommit, "x"), Erase("c", TimestampRange::All())})});
  EXPECT_EQ(Read("r"), "") << "set, then erase";
  EXPECT_GT(first, 0u);
  const uint64_t second = ApplyTogether({Change("r", {Erase("c", TimestampRange::All()), Set("c", kAtCommit, "y"),
                                                      Set("c", 5, "z"), Erase("c", Between(5, 6))})});
  EXPECT_EQ(Read("r"), "data:c@" + std::to_string(second) + "=y") << "erase, then set";
  EXPECT_THAT(ScanKeys(), ::testing::ElementsAre("r"));
}

TEST_P(TogetherTest, ARowLeftWithoutCellsIsGone) {
  ApplyRows({"a", "b"});
  ApplyTogether({Change("a", {Erase("c", TimestampRange::All())}), Change("never", {EraseAt("c", 1)})});
  EXPECT_THAT(ScanKeys(), ::testing::ElementsAre("b"));
}

TEST_P(TogetherTest, LocksAreSetAndErasedWithTheRest) {
  const uint64_t at = ApplyTogether({Change("r", {Set("c", kAtCommit, "mine", Family::kLock)})});
  EXPECT_EQ(Read("r", {{Family::kLock, "c"}}), "lock:c@" + std::to_string(at) + "=mine");
  EXPECT_EQ(*Mutate("r", {Set("c", 1, "")}, None({In("c", {}, Family::kLock)})), MutateResult::kConditionFailed);
  ApplyTogether({Change("r", {EraseAt("c", at, Family::kLock)}, All({At("c", at, Family::kLock)}))});
  Apply("r", {Set("c", 1, "")}, None({In("c", {}, Family::kLock)}));
  EXPECT_EQ(Read("r"), "data:c@1=");
}

TEST_P(TogetherTest, NothingChangesUnlessTheConditionsOfAllRowsHold) {
  Apply("a", {Set("c", 1, "old")});
  Apply("b", {Set("c", 1, "old")});
  const std::string before = Scan();
  const Timestamp drawn = oracle_.last();
  const absl::StatusOr<JointResult> result =
      Together({Change("a", {Set("c", kAtCommit, "new")}, All({At("c", 1)})),
                Change("b", {Set("c", kAtCommit, "new")}, None({In("c", TimestampRange::From(Timestamp(1)))})),
                Change("new", {Set("c", kAtCommit, "new")})});
  ASSERT_THAT(result, IsOk());
  EXPECT_FALSE(result->applied);
  EXPECT_EQ(result->failed_row, 1u);
  EXPECT_EQ(Scan(), before);
  EXPECT_EQ(oracle_.last(), drawn.Next()) << "only the start was drawn";
}

TEST_P(TogetherTest, ARowWithoutMutationsStillAnswersItsCondition) {
  Apply("a", {Set("c", 1, "")});
  EXPECT_GT(ApplyTogether({Change("a", {}, All({At("c", 1)})), Change("b", {Set("c", 2, "")})}), 0u);
  const auto failed = Together({Change("b", {Set("c", 3, "")}), Change("a", {}, None({At("c", 1)}))});
  ASSERT_THAT(failed, IsOk());
  EXPECT_FALSE(failed->applied);
  EXPECT_EQ(failed->failed_row, 1u);
  EXPECT_EQ(Scan(), "a{data:c@1=} b{data:c@2=}");
}

TEST_P(TogetherTest, AMalformedMutationIsRefusedWhole) {
  const RowMutation good = Change("good", {Set("c", kAtCommit, "")});
  EXPECT_THAT(Together({good, Change("r", {Set("c", 1, "")}), Change("r", {Set("d", 1, "")})}),
              StatusIs(absl::StatusCode::kInvalidArgument))
      << "a row twice";
  EXPECT_THAT(Together({good, Change("r", {Set("c", 1, "")}, {}, "nope")}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Together({good, Change("", {Set("c", 1, "")})}), StatusIs(absl::StatusCode::kInvalidArgument));
  Mutation wide = Set("c", 1, "");
  wide.range = Between(1, 3);
  EXPECT_THAT(Together({good, Change("r", {wide})}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Mutate("r", {Set("c", kAtCommit, "")}), StatusIs(absl::StatusCode::kInvalidArgument))
      << "Mutate draws no timestamps";
  EXPECT_EQ(Scan(), "");
}

TEST_P(TogetherTest, TheSameRowOfTwoTablesIsNotTheSameRow) {
  ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
  EXPECT_GT(ApplyTogether({Change("r", {Set("c", 1, "")}), Change("r", {Set("c", 1, "")}, {}, "u")}), 0u);
}

TEST_P(TogetherTest, WithoutATimestampNothingChanges) {
  Apply("r", {Set("c", 1, "old")});
  TestOracle failing;
  failing.AnswerWith(absl::UnavailableError("no oracle answers"));
  const JointMutation mutation{oracle_.GetTimestamp().value(), {Change("r", {Set("c", kAtCommit, "new")})}};
  const absl::StatusOr<JointResult> result = store_->MutateTogether(mutation, &failing);
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("no oracle answers"));
  EXPECT_EQ(Scan(), "r{data:c@1=old}") << "and the rows are open again";
  EXPECT_GT(ApplyTogether(mutation.rows), 0u);
}

TEST_P(TogetherTest, AStartAtOrBelowTheSafePointIsRefused) {
  const Timestamp start = oracle_.GetTimestamp().value();
  ASSERT_THAT(store_->RaiseSafePoint(start), IsOk());
  const RowMutation row = Change("r", {Set("c", kAtCommit, "")});
  EXPECT_THAT(store_->MutateTogether({start, {row}}, &oracle_), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(store_->MutateTogether({start.Next(), {Change("r", {Set("c", 5, "", Family::kLock)})}}, &oracle_),
              StatusIs(absl::StatusCode::kOutOfRange))
      << "a lock below the safe point";
  EXPECT_EQ(Scan(), "");
  EXPECT_THAT(store_->MutateTogether({start.Next(), {row}}, &oracle_), IsOk());
}

TEST_P(TogetherTest, WithoutRowsOnlyATimestampIsDrawn) {
  const uint64_t drawn = ApplyTogether({});
  EXPECT_EQ(drawn, oracle_.last().value());
  EXPECT_EQ(Scan(), "");
}

// The rows are closed from before the timestamp is drawn until all is applied.
TEST_P(TogetherTest, CallsMadeWhileTheTimestampIsDrawnWaitAndSeeTheMutation) {
  Apply("a", {Set("c", 1, "old")});
  Apply("b", {Set("c", 1, "old")});
  HeldOracle slow(&oracle_);
  const JointMutation mutation{oracle_.GetTimestamp().value(),
                               {Change("a", {Set("c", kAtCommit, "new")}), Change("b", {Set("c", kAtCommit, "new")})}};
  TestOracle failing;
  failing.AnswerWith(absl::UnavailableError("no oracle answers"));
  EXPECT_FALSE(store_->MutateTogether(mutation, &failing).ok()) << "an earlier attempt leaves nothing";
  std::thread writer([&] { EXPECT_THAT(store_->MutateTogether(mutation, &slow), IsOk()); });
  slow.WaitUntilAsked();
  std::atomic<int> done = 0;
  std::vector<std::thread> others;
  const auto expect = [&](const std::string& what, std::function<std::string()> look) {
    others.emplace_back([&done, what, look = std::move(look)] {
      EXPECT_THAT(look(), ::testing::HasSubstr("=new")) << what;
      ++done;
    });
  };
  const std::vector<Selector> newest = {Column("c", {}, 1)};
  expect("a column of the first row", [&] { return Read("a", newest); });
  expect("a column of the last row", [&] { return Read("b", newest); });
  expect("whole families", [&] { return Read("a"); });
  expect("a scan", [&] { return Scan(RowRange::Single("b"), newest); });
  expect("a mutation", [&] {
    Apply("b", {Set("d", 1, "")}, Any({In("c", TimestampRange::From(Timestamp(2)))}));
    return Read("b");
  });
  std::this_thread::sleep_for(kWhile);
  EXPECT_EQ(done, 0) << "a call has not waited";
  slow.Answer();
  for (std::thread& other : others) other.join();
  writer.join();
}

TEST_P(TogetherTest, OfManyMutationsOfARowExactlyOneWins) {
  constexpr int kThreads = 4, kRounds = 40;
  std::array<std::atomic<int>, kRounds> winners = {};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        const std::string row = std::to_string(round);
        const std::string own = row + "-" + std::to_string(id);
        const auto result = Together({Change(own, {Set("c", kAtCommit, "")}),
                                      Change(row, {Set("c", kAtCommit, own)}, None({In("c", TimestampRange::All())}))});
        ASSERT_THAT(result, IsOk());
        winners[round] += result->applied ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int round = 0; round < kRounds; ++round) EXPECT_EQ(winners[round], 1) << round;
  EXPECT_EQ(ScanKeys().size(), 2u * kRounds) << "a loser has left something";
}

TEST_P(TogetherTest, EveryMutationGetsATimestampOfItsOwn) {
  constexpr int kThreads = 8, kEach = 50;
  std::vector<std::vector<uint64_t>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < kEach; ++i) {
        const std::string row = std::to_string(id) + "-" + std::to_string(i);
        const uint64_t before = oracle_.last().value();
        drawn[id].push_back(ApplyTogether({Change(row, {Set("c", kAtCommit, row)})}));
        ASSERT_GT(drawn[id].back(), before);
        ASSERT_EQ(Read(row), "data:c@" + std::to_string(drawn[id].back()) + "=" + row) << "acknowledged but not seen";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& own : drawn) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), size_t{kThreads} * kEach);
}

// Transfers between accounts, each one joint mutation, while others read at new timestamps: every read sees the same
// sum, and sees the same when it is repeated (T8).
class BankTest : public TogetherTest {
 protected:
  static constexpr int kAccounts = 6, kEach = 100;

  static std::string Account(int i) { return "account" + std::to_string(i); }
  static std::vector<Selector> UpTo(Timestamp ts) { return {{Family::kWrite, "balance", TimestampRange::UpTo(ts), 1}}; }
  using Balances = std::map<std::string, int>;
  static Balances BalancesOf(const std::vector<Row>& rows) {
    Balances balances;
    for (const Row& row : rows) balances[row.key] = row.cells.size() == 1 ? std::stoi(row.cells[0].value) : -1000;
    return balances;
  }

  void OpenAccounts() {
    std::vector<RowMutation> rows;
    for (int i = 0; i < kAccounts; ++i) {
      rows.push_back(Change(Account(i), {Set("balance", kAtCommit, "100", Family::kWrite)}));
    }
    ASSERT_GT(ApplyTogether(rows), 0u);
  }

  Balances ReadAt(Timestamp ts) {
    std::vector<RowRead> reads;
    for (int i = 0; i < kAccounts; ++i) reads.push_back({"t", Account(i), UpTo(ts)});
    const auto rows = store_->Read(reads);
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? BalancesOf(*rows) : Balances();
  }
  Balances ScanAt(Timestamp ts) {
    const auto page = store_->Scan(ScanOf(RowRange::Prefix("account"), UpTo(ts)));
    EXPECT_THAT(page, IsOk());
    return page.ok() ? BalancesOf(page->rows) : Balances();
  }

  // Moves an amount, unless another thread has changed the accounts meanwhile.
  bool Transfer(int from, int to, int amount) {
    const Timestamp start = oracle_.GetTimestamp().value();
    Balances balances = ReadAt(start);
    const Condition unchanged = None({In("balance", TimestampRange::From(start), Family::kWrite)});
    const auto set = [&](int account, int by) {
      const std::string balance = std::to_string(balances[Account(account)] + by);
      return Change(Account(account), {Set("balance", kAtCommit, balance, Family::kWrite)}, unchanged);
    };
    const auto result = store_->MutateTogether({start, {set(from, -amount), set(to, amount)}}, &oracle_);
    EXPECT_THAT(result, IsOk());
    return result.ok() && result->applied;
  }

  void Look() {
    const Timestamp ts = oracle_.GetTimestamp().value();
    const bool scan_first = ts.value() % 2 == 0;
    const Balances first = scan_first ? ScanAt(ts) : ReadAt(ts);
    int sum = 0;
    for (const auto& [account, balance] : first) sum += balance;
    ASSERT_EQ(sum, 100 * kAccounts) << "at " << ts;
    const Balances again = scan_first ? ReadAt(ts) : ScanAt(ts);
    ASSERT_EQ(again, first) << "something at or below " << ts << " has appeared";
  }
};

TEST_P(BankTest, EveryReadSeesTheSameSumAndIsRepeatable) {
  OpenAccounts();
  if (HasFailure()) return;
  std::atomic<int> writing = 3;
  std::atomic<int> transfers = 0;
  std::vector<std::thread> threads;
  for (int id = 0; id < 3; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(id);
      for (int i = 0; i < kEach && !HasFailure(); ++i) {
        const int from = static_cast<int>(random() % kAccounts);
        transfers += Transfer(from, (from + 1) % kAccounts, static_cast<int>(random() % 10)) ? 1 : 0;
      }
      --writing;
    });
    threads.emplace_back([&] {
      do Look();
      while (writing > 0 && !HasFailure());
    });
  }
  // A further thread writes to the same rows with plain mutations.
  threads.emplace_back([&] {
    for (uint64_t i = 1; writing > 0; ++i) Apply(Account(0), {Set("note", i, ""), Erase("note", Between(0, i))});
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(transfers, kEach / 2);
  Look();
}

TEST_P(TogetherReopenTest, AppliedMutationsSurviveReopening) {
  const std::string c = std::to_string(
      ApplyTogether({Change("a", {Set("c", kAtCommit, "1")}), Change("b", {Set("c", kAtCommit, "2", Family::kLock)})}));
  Open({});
  EXPECT_EQ(Scan(), "a{data:c@" + c + "=1} b{lock:c@" + c + "=2}");
  EXPECT_EQ(*Mutate("b", {}, None({In("c", {}, Family::kLock)})), MutateResult::kConditionFailed);
  ASSERT_THAT(store_->Close(), IsOk());
  EXPECT_THAT(Together({Change("a", {Set("c", kAtCommit, "1")})}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(TogetherLimitsTest, AllRowsTogetherShareTheLimitOfOneRow) {
  StoreLimits limits;
  limits.max_row_mutation_bytes = 100;
  Open(limits);
  const std::string value(40, 'v');
  EXPECT_GT(ApplyTogether({Change("a", {Set("c", 1, value)}), Change("b", {Set("c", 1, value)})}), 0u);
  EXPECT_THAT(Together({Change("d", {Set("c", 1, value)}), Change("e", {Set("c", 1, value)}),
                        Change("f", {Set("c", 1, value)})}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ScanKeys(), ::testing::ElementsAre("a", "b"));
}

INSTANTIATE_TEST_SUITE_P(Stores, TogetherTest, ::testing::ValuesIn(StoresToTest()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, BankTest, ::testing::ValuesIn(StoresToTest()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, TogetherReopenTest, ::testing::ValuesIn(StoresThatKeepContent()), NameOfStore);
INSTANTIATE_TEST_SUITE_P(Stores, TogetherLimitsTest, ::testing::ValuesIn(StoresThatTakeLimits()), NameOfStore);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TogetherReopenTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TogetherLimitsTest);

}  // namespace
}  // namespace percolator
