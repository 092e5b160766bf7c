// SPDX-License-Identifier: Apache-2.0

#include "src/observe/histogram.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace percolator {
namespace {

int64_t UpTo(int64_t micros) {
  Histogram histogram;
  histogram.Record(Duration(micros));
  const std::vector<Histogram::Bucket> buckets = histogram.Buckets();
  EXPECT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].count, 1);
  return buckets[0].up_to.count();
}

TEST(HistogramTest, ABucketEndsAtMostAQuarterAboveItsDurations) {
  for (int64_t micros : {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 100, 999, 1000, 1023, 1024, 1025, 123'456, 98'765'432}) {
    EXPECT_GE(UpTo(micros), micros);
    EXPECT_LE(UpTo(micros), micros + micros / 4) << micros;
  }
}

TEST(HistogramTest, BucketsHaveNoGaps) {
  for (int64_t micros = 0; micros < 5000; ++micros) {
    const int64_t up_to = UpTo(micros);
    EXPECT_EQ(UpTo(up_to), up_to);
    EXPECT_GT(UpTo(up_to + 1), up_to);
  }
}

TEST(HistogramTest, ExtremesAreCounted) {
  EXPECT_EQ(UpTo(-5), 0);
  EXPECT_EQ(UpTo(INT64_MAX), (int64_t{1} << 44) - 1);
}

TEST(HistogramTest, PercentilesAreBucketBounds) {
  Histogram histogram;
  EXPECT_EQ(Histogram::Percentile(histogram.Buckets(), 0.5), Duration(0));
  for (int i = 0; i < 98; ++i) histogram.Record(Duration(3));
  histogram.Record(Duration(100));
  histogram.Record(Duration(10'000));
  const std::vector<Histogram::Bucket> buckets = histogram.Buckets();
  EXPECT_EQ(Histogram::Percentile(buckets, 0.5), Duration(3));
  EXPECT_EQ(Histogram::Percentile(buckets, 0.99), Duration(UpTo(100)));
  EXPECT_EQ(Histogram::Percentile(buckets, 1.0), Duration(UpTo(10'000)));
}

TEST(HistogramTest, CountsDurationsFromAllThreads) {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) histogram.Record(Duration(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t total = 0;
  for (const Histogram::Bucket& bucket : histogram.Buckets()) total += bucket.count;
  EXPECT_EQ(total, 4000);
}

}  // namespace
}  // namespace percolator
