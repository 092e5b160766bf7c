// SPDX-License-Identifier: Apache-2.0

// Mutations that are retried: src/txn/apply.h.

#include "src/txn/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;

// Fails single row mutations, each for its own reason.
class FussyStore final : public ForwardingStore {
 public:
  struct Failure {
    absl::Status error;
    int times = 1;
  };

  using ForwardingStore::ForwardingStore;

  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    std::vector<absl::StatusOr<MutateResult>> results;
    std::vector<std::string>& rows = sent_.emplace_back();
    for (const RowMutation& mutation : mutations) {
      rows.push_back(mutation.row);
      const auto failure = failures_.find(mutation.row);
      const bool fails = failure != failures_.end() && failure->second.times-- > 0;
      results.push_back(fails ? failure->second.error : ForwardingStore::Mutate({mutation})[0]);
    }
    return results;
  }

  void Fail(const std::string& row, Failure failure) { failures_[row] = std::move(failure); }
  // The rows of each request.
  const std::vector<std::vector<std::string>>& sent() const { return sent_; }

 private:
  std::map<std::string, Failure> failures_;
  std::vector<std::vector<std::string>> sent_;
};

class ApplyTest : public StepsTest {
 protected:
  static constexpr int kForGood = 1'000'000;

  ApplyTest() : store_(Borrow(world_.store.get())) { me_.env().store = Borrow<Store>(&store_); }

  // Sets a cell in each row.
  absl::Status Apply(const std::vector<std::string>& rows) {
    std::vector<RowMutation> mutations;
    for (const std::string& row : rows) {
      mutations.push_back({kTable, row, {}, {Mutation::Set(Family::kNotify, kColumn, Timestamp(7), "")}});
    }
    return ApplyInTime(me_.env(), std::move(mutations), me_.deadline());
  }
  bool IsSet(const std::string& row) {
    return !world_.store->Read({{kTable, row, {{Family::kNotify, kColumn, TimestampRange::All()}}}})
                .value()[0]
                .cells.empty();
  }

  FussyStore store_;
};

TEST_F(ApplyTest, OnlyRowsThatFailedAreTriedAgain) {
  store_.Fail("Joe", {absl::UnavailableError("away"), 2});
  EXPECT_THAT(Apply({"Bob", "Joe"}), IsOk());
  EXPECT_THAT(store_.sent(), ElementsAre(ElementsAre("Bob", "Joe"), ElementsAre("Joe"), ElementsAre("Joe")));
  EXPECT_TRUE(IsSet("Joe"));
}

TEST_F(ApplyTest, ATransientErrorIsReturnedAtTheDeadline) {
  store_.Fail("Bob", {absl::UnavailableError("away"), kForGood});
  EXPECT_EQ(Apply({"Bob", "Joe"}), absl::UnavailableError("away"));
  EXPECT_TRUE(IsSet("Joe"));
  EXPECT_GE(world_.runtime.Elapsed(), Options().call_timeout);
}

// Regression: the last error used to decide for all rows.
TEST_F(ApplyTest, ARowThatFailsForGoodDoesNotEndTheRetriesOfOthers) {
  store_.Fail("Bob", {absl::UnavailableError("away"), 1});
  store_.Fail("Joe", {absl::ResourceExhaustedError("full"), kForGood});
  EXPECT_EQ(Apply({"Bob", "Joe"}), absl::ResourceExhaustedError("full"));
  EXPECT_THAT(store_.sent(), ElementsAre(ElementsAre("Bob", "Joe"), ElementsAre("Bob")));
  EXPECT_TRUE(IsSet("Bob"));
}

TEST_F(ApplyTest, ARowThatFailsForGoodIsNotTriedAgainWithOthers) {
  store_.Fail("Bob", {absl::ResourceExhaustedError("full"), kForGood});
  store_.Fail("Joe", {absl::UnavailableError("away"), 1});
  EXPECT_EQ(Apply({"Bob", "Joe"}), absl::ResourceExhaustedError("full"));
  EXPECT_THAT(store_.sent(), ElementsAre(ElementsAre("Bob", "Joe"), ElementsAre("Joe")));
  EXPECT_TRUE(IsSet("Joe"));
}

TEST_F(ApplyTest, OfTwoErrorsTheLastingOneIsReturned) {
  store_.Fail("Bob", {absl::ResourceExhaustedError("full"), kForGood});
  store_.Fail("Joe", {absl::UnavailableError("away"), kForGood});
  EXPECT_EQ(Apply({"Bob", "Joe"}), absl::ResourceExhaustedError("full"));
}

}  // namespace
}  // namespace percolator
