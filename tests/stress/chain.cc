// SPDX-License-Identifier: Apache-2.0

#include "tests/stress/chain.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "percolator/column.h"
#include "percolator/status_macros.h"
#include "percolator/transaction.h"
#include "src/base/strings.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

constexpr int kSources = 40;
constexpr int kBuckets = 4;

constexpr Column<int64_t> kValue("src", "value");
constexpr Column<int64_t> kAdded("src", "added");
constexpr Column<int64_t> kChanges("src", "changes");
constexpr Column<int64_t> kRuns("src", "runs");
constexpr Column<int64_t> kTotal("sums", "total");
constexpr Column<int64_t> kGrand("sums", "grand");
constexpr NotifyColumn kTouched("sums", "touched");
constexpr Column<int64_t> kPublished("out", "total");
constexpr char kHot[] = "hot";

std::string BucketOf(std::string_view source) { return StrCat("b", std::stoi(std::string(source)) % kBuckets); }

absl::Status AddNumber(ReadWrite& t, const Column<int64_t>& column, std::string_view row, int64_t number) {
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t old, t.Get(column, row, 0));
  t.Set(column, row, old + number);
  return absl::OkStatus();
}

absl::Status Add(ReadWrite& t, const std::string& source) {
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t value, t.Get(kValue, source, 0));
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t added, t.Get(kAdded, source, 0));
  PERCOLATOR_RETURN_IF_ERROR(AddNumber(t, kTotal, BucketOf(source), value - added));
  t.Set(kAdded, source, value);
  PERCOLATOR_RETURN_IF_ERROR(AddNumber(t, kRuns, source, 1));
  t.Notify(kTouched, kHot);
  return absl::OkStatus();
}

absl::Status Publish(ReadWrite& t, const std::string& bucket) {
  PERCOLATOR_ASSIGN_OR_RETURN(const int64_t total, t.Get(kTotal, bucket, 0));
  t.Set(kPublished, bucket, total);
  return absl::OkStatus();
}

absl::Status Gather(ReadWrite& t, const std::string& /*row*/) {
  int64_t grand = 0;
  for (int b = 0; b < kBuckets; ++b) {
    PERCOLATOR_ASSIGN_OR_RETURN(const int64_t total, t.Get(kTotal, StrCat("b", b), 0));
    grand += total;
  }
  t.Set(kGrand, kHot, grand);
  return absl::OkStatus();
}

int64_t Number(const ReadView& view, const Column<int64_t>& column, std::string_view row) {
  const absl::StatusOr<int64_t> number = view.Get(column, row, 0);
  EXPECT_THAT(number, IsOk());
  return number.value_or(-1);
}

}  // namespace

absl::Status SetUpChain(const Cluster& cluster) {
  PERCOLATOR_RETURN_IF_ERROR(cluster.CreateTable("src"));
  PERCOLATOR_RETURN_IF_ERROR(cluster.CreateTable("sums", {.notify_only_columns = {"touched"}}));
  return cluster.CreateTable("out");
}

void ObserveChain(Worker* worker) {
  worker->Observe(kValue, "add", Add);
  worker->Observe(kTotal, "publish", Publish);
  worker->Observe(kTouched, "gather", Gather);
}

absl::Status ChangeSources(const Cluster& cluster, std::mt19937_64* random) {
  std::vector<std::string> rows = {std::to_string((*random)() % kSources)};
  if ((*random)() % 3 == 0) rows.push_back(std::to_string((*random)() % kSources));
  const bool deletes = (*random)() % 10 == 0;
  const auto value = static_cast<int64_t>((*random)() % 1000);
  return cluster.Transact([&](ReadWrite& t) -> absl::Status {
    for (const std::string& row : rows) {
      PERCOLATOR_RETURN_IF_ERROR(AddNumber(t, kChanges, row, 1));
      deletes ? t.Delete(kValue, row) : t.Set(kValue, row, value);
    }
    return absl::OkStatus();
  });
}

void CheckChain(const Cluster& cluster, ChainCounts* counts) {
  const absl::StatusOr<Snapshot> view = cluster.GetSnapshot();
  ASSERT_THAT(view, IsOk());
  std::map<std::string, int64_t> totals;
  int64_t grand = 0;
  for (int i = 0; i < kSources; ++i) {
    const std::string row = std::to_string(i);
    const int64_t value = Number(*view, kValue, row);
    EXPECT_EQ(Number(*view, kAdded, row), value) << "source " << i;
    EXPECT_LE(Number(*view, kRuns, row), Number(*view, kChanges, row)) << "source " << i;
    totals[BucketOf(row)] += value;
    grand += value;
    counts->changes += Number(*view, kChanges, row);
    counts->runs += Number(*view, kRuns, row);
  }
  for (const auto& [bucket, total] : totals) {
    EXPECT_EQ(Number(*view, kTotal, bucket), total) << bucket;
    EXPECT_EQ(Number(*view, kPublished, bucket), total) << bucket;
  }
  EXPECT_EQ(Number(*view, kGrand, kHot), grand);
}

}  // namespace percolator
