// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/newest_sketch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace percolator {
namespace {

TEST(NewestSketchTest, ExcludesOnlyTimestampsAboveAllWritten) {
  NewestSketch sketch(Timestamp(5));
  EXPECT_TRUE(sketch.MayHaveFrom(Family::kWrite, "cell", Timestamp(5)));
  EXPECT_FALSE(sketch.MayHaveFrom(Family::kWrite, "cell", Timestamp(6)));
  sketch.Raise(Family::kWrite, "cell", Timestamp(10));
  sketch.Raise(Family::kWrite, "cell", Timestamp(8));
  EXPECT_TRUE(sketch.MayHaveFrom(Family::kWrite, "cell", Timestamp(10)));
  EXPECT_FALSE(sketch.MayHaveFrom(Family::kWrite, "cell", Timestamp(11)));
  EXPECT_FALSE(sketch.MayHaveFrom(Family::kData, "cell", Timestamp(6))) << "another family";
}

TEST(NewestSketchTest, GuessesTheLastRaiseButNothingFromBeforeOpening) {
  NewestSketch sketch(Timestamp(5));
  EXPECT_EQ(sketch.LikelyNewest(Family::kWrite, "cell"), std::nullopt);
  sketch.Raise(Family::kWrite, "cell", Timestamp(10));
  sketch.Raise(Family::kWrite, "cell", Timestamp(8));
  EXPECT_EQ(sketch.LikelyNewest(Family::kWrite, "cell"), Timestamp(10));
}

TEST(NewestSketchTest, TimestampsThatDoNotFitAreNeitherExcludedNorGuessed) {
  NewestSketch sketch(Timestamp(5));
  const Timestamp fits((uint64_t{1} << 54) - 2);
  sketch.Raise(Family::kWrite, "a", fits);
  EXPECT_EQ(sketch.LikelyNewest(Family::kWrite, "a"), fits);
  EXPECT_FALSE(sketch.MayHaveFrom(Family::kWrite, "a", fits.Next()));
  for (const uint64_t large : {uint64_t{1} << 54, ~uint64_t{1}}) {
    sketch.Raise(Family::kWrite, "b", Timestamp(large));
    EXPECT_EQ(sketch.LikelyNewest(Family::kWrite, "b"), std::nullopt);
    EXPECT_TRUE(sketch.MayHaveFrom(Family::kWrite, "b", Timestamp(large)));
    EXPECT_TRUE(sketch.MayHaveFrom(Family::kWrite, "b", Timestamp(~uint64_t{1})));
  }
}

// With more cells than buckets: a bound stays a bound, and a guess is rarely that of another cell.
TEST(NewestSketchTest, CellsThatShareABucketKeepTheirBoundsAndRarelyGuessWrong) {
  NewestSketch sketch{Timestamp()};
  constexpr uint64_t kCells = 2 * NewestSketch::kBuckets;
  for (uint64_t i = 1; i <= kCells; ++i) sketch.Raise(Family::kWrite, std::to_string(i), Timestamp(i));
  uint64_t right = 0, wrong = 0;
  for (uint64_t i = 1; i <= kCells; i += 7) {
    const std::string cell = std::to_string(i);
    ASSERT_TRUE(sketch.MayHaveFrom(Family::kWrite, cell, Timestamp(i)));
    const std::optional<Timestamp> guess = sketch.LikelyNewest(Family::kWrite, cell);
    if (!guess.has_value()) continue;
    ++(*guess == Timestamp(i) ? right : wrong);
    ASSERT_GE(*guess, Timestamp(i));
  }
  EXPECT_GT(right, kCells / 7 / 5);
  EXPECT_LT(wrong, right / 50);
}

// Enough cells for every bucket of the small array: then the large one decides.
TEST(NewestSketchTest, ExcludesMostCellsAfterManyOthersWereWritten) {
  NewestSketch sketch(Timestamp(5));
  constexpr uint64_t kCells = NewestSketch::kBuckets / 4;
  for (uint64_t i = 0; i < kCells; ++i) sketch.Raise(Family::kWrite, std::to_string(i), Timestamp(10));
  uint64_t excluded = 0;
  for (uint64_t i = kCells; i < kCells + 1000; ++i) {
    excluded += sketch.MayHaveFrom(Family::kWrite, std::to_string(i), Timestamp(10)) ? 0 : 1;
  }
  EXPECT_GT(excluded, 600U);
  EXPECT_LT(excluded, 900U) << "a bucket in five is shared";
}

TEST(NewestSketchTest, CountsTheChangesOfACell) {
  NewestSketch sketch(Timestamp(0));
  const uint64_t before = sketch.Changes(Family::kWrite, "cell");
  sketch.CountChange(Family::kWrite, "cell");
  EXPECT_EQ(sketch.Changes(Family::kWrite, "cell"), before + 1);
  EXPECT_EQ(sketch.Changes(Family::kWrite, "another"), 0U);
}

}  // namespace
}  // namespace percolator
