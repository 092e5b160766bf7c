#include "tests/stress/chain.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/strings.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

constexpr int kSources = 40;
constexpr int kBuckets = 4;

std::string BucketOf(std::string_view source) { return StrCat("b", std::stoi(std::string(source)) % kBuckets); }

absl::StatusOr<int64_t> GetNumber(ReadView& view, std::string_view table, std::string_view row,
                                  std::string_view column) {
  const absl::StatusOr<std::optional<std::string>> value = view.Get(table, row, column);
  if (!value.ok()) return value.status();
  return value->has_value() ? std::stoll(**value) : 0;
}

absl::Status AddNumber(ReadWrite& t, std::string_view table, std::string_view row, std::string_view column,
                       int64_t number) {
  const absl::StatusOr<int64_t> old = GetNumber(t, table, row, column);
  if (!old.ok()) return old.status();
  return t.Set(table, row, column, std::to_string(*old + number));
}

absl::Status Add(ReadWrite& t, const Notification& n) {
  const absl::StatusOr<int64_t> value = GetNumber(t, "src", n.cell.row, "value");
  const absl::StatusOr<int64_t> added = GetNumber(t, "src", n.cell.row, "added");
  if (!value.ok() || !added.ok()) return value.ok() ? added.status() : value.status();
  if (absl::Status s = AddNumber(t, "sums", BucketOf(n.cell.row), "total", *value - *added); !s.ok()) return s;
  if (absl::Status s = t.Set("src", n.cell.row, "added", std::to_string(*value)); !s.ok()) return s;
  if (absl::Status s = AddNumber(t, "src", n.cell.row, "runs", 1); !s.ok()) return s;
  return t.Notify("sums", "hot", "touched");
}

absl::Status Publish(ReadWrite& t, const Notification& n) {
  const absl::StatusOr<int64_t> total = GetNumber(t, "sums", n.cell.row, "total");
  if (!total.ok()) return total.status();
  return t.Set("out", n.cell.row, "total", std::to_string(*total));
}

absl::Status Gather(ReadWrite& t, const Notification& /*n*/) {
  int64_t grand = 0;
  for (int b = 0; b < kBuckets; ++b) {
    const absl::StatusOr<int64_t> total = GetNumber(t, "sums", StrCat("b", b), "total");
    if (!total.ok()) return total.status();
    grand += *total;
  }
  return t.Set("sums", "hot", "grand", std::to_string(grand));
}

int64_t Number(ReadView& view, std::string_view table, std::string_view row, std::string_view column) {
  const absl::StatusOr<int64_t> number = GetNumber(view, table, row, column);
  EXPECT_THAT(number, IsOk());
  return number.value_or(-1);
}

}  // namespace

absl::Status SetUpChain(Cluster* cluster) {
  if (absl::Status s = cluster->CreateTable("src"); !s.ok()) return s;
  if (absl::Status s = cluster->CreateTable("sums", {.notify_only_columns = {"touched"}}); !s.ok()) return s;
  return cluster->CreateTable("out");
}

void ObserveChain(Worker* worker) {
  worker->Observe({.name = "add", .table = "src", .column = "value", .run = Add});
  worker->Observe({.name = "publish", .table = "sums", .column = "total", .run = Publish});
  worker->Observe(
      {.name = "gather", .table = "sums", .column = "touched", .kind = NotificationKind::kWeak, .run = Gather});
}

absl::Status ChangeSources(Cluster* cluster, std::mt19937_64* random) {
  std::vector<std::string> rows = {std::to_string((*random)() % kSources)};
  if ((*random)() % 3 == 0) rows.push_back(std::to_string((*random)() % kSources));
  const bool deletes = (*random)() % 10 == 0;
  const auto value = static_cast<int64_t>((*random)() % 1000);
  return cluster
      ->Transact([&](ReadWrite& t) {
        for (const std::string& row : rows) {
          if (absl::Status s = AddNumber(t, "src", row, "changes", 1); !s.ok()) return s;
          absl::Status s = deletes ? t.Delete("src", row, "value") : t.Set("src", row, "value", std::to_string(value));
          if (!s.ok()) return s;
        }
        return absl::OkStatus();
      })
      .status();
}

void CheckChain(Cluster* cluster, ChainCounts* counts) {
  absl::StatusOr<Snapshot> view = cluster->Now();
  ASSERT_THAT(view, IsOk());
  std::map<std::string, int64_t> totals;
  int64_t grand = 0;
  for (int i = 0; i < kSources; ++i) {
    const std::string row = std::to_string(i);
    const int64_t value = Number(*view, "src", row, "value");
    EXPECT_EQ(Number(*view, "src", row, "added"), value) << "source " << i;
    EXPECT_LE(Number(*view, "src", row, "runs"), Number(*view, "src", row, "changes")) << "source " << i;
    totals[BucketOf(row)] += value;
    grand += value;
    counts->changes += Number(*view, "src", row, "changes");
    counts->runs += Number(*view, "src", row, "runs");
  }
  for (const auto& [bucket, total] : totals) {
    EXPECT_EQ(Number(*view, "sums", bucket, "total"), total) << bucket;
    EXPECT_EQ(Number(*view, "out", bucket, "total"), total) << bucket;
  }
  EXPECT_EQ(Number(*view, "sums", "hot", "grand"), grand);
}

}  // namespace percolator
