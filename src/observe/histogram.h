// SPDX-License-Identifier: Apache-2.0

// Histogram: counts durations in buckets, each about a fifth wider than the one before.
//
// Each duration below 4 µs has its own bucket; above that, every doubling is divided into four. So a percentile is at
// most a quarter too large. Thread-safe.

#ifndef PERCOLATOR_OBSERVE_HISTOGRAM_H_
#define PERCOLATOR_OBSERVE_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "percolator/options.h"
#include "src/base/check.h"

namespace percolator {

class Histogram {
 public:
  struct Bucket {
    Duration up_to;  // included
    int64_t count;
  };

  void Record(Duration duration) { counts_[IndexOf(duration)].fetch_add(1, std::memory_order_relaxed); }

  // Returns the buckets that are not empty, by duration.
  std::vector<Bucket> Buckets() const {
    std::vector<Bucket> buckets;
    for (size_t i = 0; i < kBuckets; ++i) {
      const int64_t count = counts_[i].load(std::memory_order_relaxed);
      if (count > 0) buckets.push_back({UpperBound(i), count});
    }
    return buckets;
  }

  // Returns the upper bound of the bucket with the given percentile: a `part` of all durations does not exceed it.
  // Returns zero if there are no durations.
  // REQUIRES: 0 < part <= 1.
  static Duration Percentile(const std::vector<Bucket>& buckets, double part) {
    PERCOLATOR_DCHECK(0 < part && part <= 1);
    int64_t total = 0;
    for (const Bucket& bucket : buckets) total += bucket.count;
    int64_t below = 0;
    for (const Bucket& bucket : buckets) {
      below += bucket.count;
      if (static_cast<double>(below) >= part * static_cast<double>(total)) return bucket.up_to;
    }
    return Duration(0);
  }

 private:
  static constexpr int kPartBits = 2;
  static constexpr size_t kParts = size_t{1} << kPartBits;
  static constexpr int kMaxBits = 44;  // half a year; longer durations count as that
  static constexpr size_t kBuckets = kParts * (kMaxBits - kPartBits + 1);

  static size_t IndexOf(Duration duration) {
    constexpr uint64_t kMax = (uint64_t{1} << kMaxBits) - 1;
    const uint64_t value = std::min(static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0)), kMax);
    if (value < kParts) return value;
    const int doublings = static_cast<int>(std::bit_width(value)) - 1 - kPartBits;
    // The bits after the first one give the part of the doubling.
    return kParts * (doublings + 1) + ((value >> doublings) - kParts);
  }

  static Duration UpperBound(size_t index) {
    if (index < kParts) return Duration(static_cast<int64_t>(index));
    const size_t doublings = index / kParts - 1;
    return Duration(static_cast<int64_t>(((index % kParts + kParts + 1) << doublings) - 1));
  }

  std::array<std::atomic<int64_t>, kBuckets> counts_{};
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_HISTOGRAM_H_
