// SPDX-License-Identifier: Apache-2.0

#include "src/txn/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "src/base/strings.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PredictorTest, PredictsNothingAtFirst) { EXPECT_THAT(Predictor().After("kind", "t", "a"), IsEmpty()); }

TEST(PredictorTest, PredictsTheColumnsThatFollowed) {
  Predictor predictor;
  predictor.Learn("kind", "t", "a", {"c", "b"});
  EXPECT_THAT(predictor.After("kind", "t", "a"), ElementsAre("b", "c"));
}

TEST(PredictorTest, DistinguishesKindTableAndFirstColumn) {
  Predictor predictor;
  predictor.Learn("kind", "t", "a", {"b"});
  EXPECT_THAT(predictor.After("other", "t", "a"), IsEmpty());
  EXPECT_THAT(predictor.After("kind", "other", "a"), IsEmpty());
  EXPECT_THAT(predictor.After("kind", "t", "b"), IsEmpty());
}

TEST(PredictorTest, PredictsColumnsThatFollowedInAtLeastHalfOfTheCases) {
  Predictor predictor;
  predictor.Learn("kind", "t", "a", {"b"});
  predictor.Learn("kind", "t", "a", {});
  EXPECT_THAT(predictor.After("kind", "t", "a"), ElementsAre("b"));
  predictor.Learn("kind", "t", "a", {});
  EXPECT_THAT(predictor.After("kind", "t", "a"), IsEmpty());
}

// After some hundreds of transactions of a changed program, the new counts decide.
TEST(PredictorTest, OldCountsFade) {
  Predictor predictor;
  for (int i = 0; i < 10'000; ++i) predictor.Learn("kind", "t", "a", {"old"});
  for (int i = 0; i < 100; ++i) predictor.Learn("kind", "t", "a", {"new"});
  EXPECT_THAT(predictor.After("kind", "t", "a"), ElementsAre("new"));
}

TEST(PredictorTest, RemembersABoundedNumberOfColumns) {
  Predictor predictor;
  std::vector<std::string> many;
  for (size_t i = 0; i < 3 * Predictor::kMaxColumns; ++i) many.push_back(StrCat("column", i));
  for (int i = 0; i < 3; ++i) predictor.Learn("kind", "t", "a", many);
  EXPECT_THAT(predictor.After("kind", "t", "a"), SizeIs(Predictor::kMaxColumns));
}

TEST(PredictorTest, RemembersABoundedNumberOfKindsAndUpdatesThose) {
  Predictor predictor;
  for (size_t i = 0; i < Predictor::kMaxEntries + 10; ++i) predictor.Learn(StrCat("kind", i), "t", "a", {"b"});
  EXPECT_THAT(predictor.After(StrCat("kind", Predictor::kMaxEntries + 1), "t", "a"), IsEmpty());
  EXPECT_THAT(predictor.After("kind0", "t", "a"), ElementsAre("b"));
  for (int i = 0; i < 3; ++i) predictor.Learn("kind0", "t", "a", {"c"});
  EXPECT_THAT(predictor.After("kind0", "t", "a"), ElementsAre("c"));
}

TEST(PredictorTest, IsThreadSafe) {
  Predictor predictor;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&predictor, t] {
      const std::string kind = StrCat("kind", t % 2);
      for (int i = 0; i < 2'000; ++i) {
        predictor.Learn(kind, "t", "a", {"b"});
        if (predictor.After(kind, "t", "a") != std::vector<std::string>{"b"}) ADD_FAILURE() << i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace percolator
