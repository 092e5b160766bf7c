// SPDX-License-Identifier: Apache-2.0

// Conformance: row atomicity, with real threads.
//
// Every loop is bounded by a count of writes; readers run for as long as there are writers.

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/conformance.h"

namespace percolator {
namespace {

constexpr int kThreadsTogether = 4;

// Runs `writers` to their end, and `readers` repeatedly until then, each at least once.
void RunTogether(const std::vector<std::function<void()>>& writers, const std::vector<std::function<void()>>& readers) {
  std::atomic<bool> done = false;
  std::vector<std::thread> writing, reading;
  for (const auto& reader : readers) {
    reading.emplace_back([&done, &reader] {
      do reader();
      while (!done && !::testing::Test::HasFailure());
    });
  }
  for (const auto& writer : writers) writing.emplace_back(writer);
  for (std::thread& thread : writing) thread.join();
  done = true;
  for (std::thread& thread : reading) thread.join();
}

void ExpectAllValuesEqual(const Row& row, size_t cells) {
  ASSERT_TRUE(row.cells.empty() || row.cells.size() == cells) << ToText(row);
  for (const Cell& cell : row.cells) ASSERT_EQ(cell.value, row.cells[0].value) << ToText(row);
}

TEST_P(StoreTest, ReadersSeeRowMutationsWholeOrNotAtAll) {
  const std::vector<std::string> columns = {"", "a", "b", "m", "z"};
  constexpr size_t kCells = 5 * kFamilyCount;
  const auto writer = [&](int id) {
    for (int i = 0; i < 60; ++i) {
      const std::string value = std::to_string(id) + "." + std::to_string(i);
      std::vector<Mutation> mutations;
      for (int family = 0; family < kFamilyCount; ++family) {
        for (const std::string& column : columns) {
          // Erases and sets again, so that a reader could also see cells missing.
          mutations.push_back(Erase(column, {}, static_cast<Family>(family)));
          mutations.push_back(Set(column, 1 + i % 3, value, static_cast<Family>(family)));
        }
      }
      Apply("r", mutations);
    }
  };
  const auto read = [&] {
    absl::StatusOr<std::vector<Row>> rows =
        store_->Read({{"t", "r", Everything()}, {"t", "r", {Columns(Family::kNotify), Columns(Family::kData)}}});
    ASSERT_THAT(rows, IsOk());
    ExpectAllValuesEqual(rows->at(0), kCells);
    ExpectAllValuesEqual(rows->at(1), kCells / 2);
  };
  const auto scan = [&] {
    absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::All(), Everything()));
    ASSERT_THAT(page, IsOk());
    for (const Row& row : page->rows) ExpectAllValuesEqual(row, kCells);
  };
  ApplyRows({"q", "s"});  // neighbours, so that the scan has to find the borders
  Apply("q", {Erase("c", {})});
  Apply("s", {Erase("c", {})});
  RunTogether({[&] { writer(1); }, [&] { writer(2); }}, {read, scan});
}

// The newest version that a selector returned, if any.
std::optional<uint64_t> NewestOf(const Row& row, Family family) {
  for (const Cell& cell : row.cells) {
    if (cell.family == family) return cell.timestamp.value();
  }
  return std::nullopt;
}

// One writer prewrites and commits n = 1, 2, ...: data and lock @ n; then the lock moves into a write @ n. In
// one view:
//   locked at n:  data is n, write is n - 1        not locked:  data and write are the same
void ExpectStateOfACommit(const Row& row, uint64_t acknowledged) {
  const uint64_t data = NewestOf(row, Family::kData).value_or(0);
  const uint64_t write = NewestOf(row, Family::kWrite).value_or(0);
  const std::optional<uint64_t> lock = NewestOf(row, Family::kLock);
  ASSERT_LE(std::count_if(row.cells.begin(), row.cells.end(), [](const Cell& c) { return c.family == Family::kLock; }),
            1)
      << ToText(row);
  if (lock.has_value()) {
    ASSERT_EQ(*lock, data) << ToText(row);
    ASSERT_EQ(*lock, write + 1) << ToText(row);
  } else {
    ASSERT_EQ(write, data) << ToText(row);
  }
  ASSERT_GE(write, acknowledged) << "an acknowledged commit is not seen: " << ToText(row);
}

// A reader that repeatedly asks for the newest version gets one at least as new as every version acknowledged before,
// even when the version it got last is erased, and never one that was not yet written.
TEST_P(StoreTest, TheNewestVersionIsNeverAnOldOne) {
  constexpr int kRows = 3;
  struct Progress {
    std::atomic<uint64_t> begun = 0;
    std::atomic<uint64_t> acknowledged = 0;
  };
  std::array<Progress, kRows> rows;
  const auto row_key = [](int row) { return "r" + std::to_string(row); };
  const auto writer = [&](int row) {
    for (uint64_t n = 1; n <= 100; ++n) {
      std::vector<Mutation> mutations = {Set("c", n, std::to_string(n), Family::kWrite)};
      if (n % 3 == 0) mutations.push_back(Erase("c", TimestampRange::Exactly(Timestamp(n - 1)), Family::kWrite));
      if (n % 7 == 0) mutations.insert(mutations.begin(), Erase("c", {}, Family::kWrite));
      rows[row].begun = n;
      Apply(row_key(row), mutations);
      rows[row].acknowledged = n;
    }
  };
  const auto reader = [&] {
    for (int row = 0; row < kRows; ++row) {
      const uint64_t acknowledged = rows[row].acknowledged;
      const absl::StatusOr<std::vector<Row>> read =
          store_->Read({{"t", row_key(row), {{Family::kWrite, "c", TimestampRange::All(), 1}}}});
      const uint64_t begun = rows[row].begun;
      ASSERT_THAT(read, IsOk());
      const uint64_t newest = NewestOf(read->front(), Family::kWrite).value_or(0);
      ASSERT_GE(newest, acknowledged);
      ASSERT_LE(newest, begun);
      if (newest > 0) {
        ASSERT_EQ(read->front().cells[0].value, std::to_string(newest));
      }
    }
  };
  RunTogether({[&] { writer(0); }, [&] { writer(1); }, [&] { writer(2); }}, {reader, reader});
}

TEST_P(StoreTest, ACommitMovesTheLockIntoTheWriteInOneStep) {
  std::atomic<uint64_t> acknowledged = 0;
  const auto writer = [&] {
    for (uint64_t n = 1; n <= 100; ++n) {
      Apply("r", {Set("c", n, "v"), Set("c", n, "", Family::kLock)},
            None({In("c", {}, Family::kLock), In("c", TimestampRange::From(Timestamp(n)), Family::kWrite)}));
      Apply("r", {EraseAt("c", n, Family::kLock), Set("c", n, "", Family::kWrite)}, All({At("c", n, Family::kLock)}));
      acknowledged = n;
    }
  };
  const auto reader = [&](const std::vector<Family>& order, bool by_scan) {
    std::vector<Selector> selectors;
    for (Family family : order) {
      selectors.push_back({family, "c", {}, family == Family::kLock ? Selector::kAllVersions : 1});
    }
    const uint64_t seen = acknowledged;
    if (by_scan) {
      absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::Prefix("r"), selectors));
      ASSERT_THAT(page, IsOk());
      for (const Row& row : page->rows) ExpectStateOfACommit(row, seen);
    } else {
      absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "r", selectors}});
      ASSERT_THAT(rows, IsOk());
      ExpectStateOfACommit(rows->at(0), seen);
    }
  };
  const std::vector<Family> lock_first = {Family::kLock, Family::kWrite, Family::kData};
  const std::vector<Family> lock_last = {Family::kData, Family::kWrite, Family::kLock};
  RunTogether({writer}, {[&] { reader(lock_first, false); }, [&] { reader(lock_last, false); },
                         [&] { reader(lock_last, true); }});
  EXPECT_EQ(acknowledged, 100);
}

TEST_P(StoreTest, OfManyConditionalWritersExactlyOneWins) {
  constexpr uint64_t kValues = 50;
  std::array<std::atomic<int>, kValues + 1> winners = {};
  std::array<std::atomic<int>, kValues + 1> winner = {};
  std::vector<std::function<void()>> threads;
  for (int id = 1; id <= kThreadsTogether; ++id) {
    threads.emplace_back([&, id] {
      for (uint64_t value = 1; value <= kValues; ++value) {
        absl::StatusOr<MutateResult> result =
            Mutate("r", {Set("c", value, std::to_string(id))}, None({At("c", value)}));
        ASSERT_THAT(result, IsOk());
        if (*result != MutateResult::kApplied) continue;
        ++winners[value];
        winner[value] = id;
      }
    });
  }
  RunTogether(threads, {});
  std::vector<Cell> expected;
  for (uint64_t value = kValues; value >= 1; --value) {
    EXPECT_EQ(winners[value], 1) << value;
    expected.push_back({Family::kData, "c", Timestamp(value), std::to_string(winner[value])});
  }
  EXPECT_EQ(Read("r"), ToText(expected));
}

TEST_P(StoreTest, ConditionalIncrementsOfACounterAreNotLost) {
  constexpr int kSteps = 40;
  Apply("r", {Set("c", 0, "")});
  const auto worker = [&] {
    for (int done = 0; done < kSteps;) {
      absl::StatusOr<std::vector<Row>> rows = store_->Read({{"t", "r", {Column("c")}}});
      ASSERT_THAT(rows, IsOk());
      ASSERT_EQ(rows->at(0).cells.size(), 1) << "the counter moves in one step: " << ToText(*rows);
      const uint64_t now = rows->at(0).cells[0].timestamp.value();
      absl::StatusOr<MutateResult> result =
          Mutate("r", {EraseAt("c", now), Set("c", now + 1, "")}, All({At("c", now)}));
      ASSERT_THAT(result, IsOk());
      if (*result == MutateResult::kApplied) ++done;
    }
  };
  RunTogether({worker, worker, worker, worker}, {});
  EXPECT_EQ(Read("r"), "data:c@" + std::to_string(kThreadsTogether * kSteps) + "=");
}

// Batches over the same rows in different orders, with repetitions, must neither block each other indefinitely nor lose
// a step.
TEST_P(StoreTest, OverlappingBatchesInAnyOrderAllApply) {
  constexpr int kRows = 8, kBatches = 30;
  const auto worker = [&](uint64_t id) {
    std::mt19937 random(id);
    for (uint64_t i = 0; i < kBatches; ++i) {
      std::vector<RowMutation> batch;
      for (int entry = 0; entry < 12; ++entry) {
        const std::string row = "row" + std::to_string(random() % kRows);
        batch.push_back({"t", row, {}, {Set(std::to_string(id), i * 100 + entry, "")}});
      }
      const std::vector<absl::StatusOr<MutateResult>> results = store_->Mutate(batch);
      ASSERT_EQ(results.size(), batch.size());
      for (const auto& result : results) ASSERT_THAT(result, IsOk());
    }
  };
  std::vector<std::function<void()>> threads;
  for (int id = 0; id < kThreadsTogether; ++id) threads.emplace_back([&worker, id] { worker(id); });
  RunTogether(threads, {});
  size_t versions = 0;
  for (const ScanPage& page : ScanPages(ScanOf(RowRange::All(), Everything()))) {
    for (const Row& row : page.rows) versions += row.cells.size();
  }
  EXPECT_EQ(versions, kThreadsTogether * kBatches * 12);
}

TEST_P(StoreTest, OperationsOnATableBeingDroppedFinishOrFindItGone) {
  const auto finished_or_gone = [](const absl::Status& status) { return status.ok() || absl::IsNotFound(status); };
  const auto dropper = [&] {
    for (int i = 0; i < 15; ++i) {
      ASSERT_THAT(store_->DropTable("t"), IsOk());
      ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
    }
  };
  const auto user = [&] {
    const auto results = store_->Mutate(
        {{"t", "a", {}, {Set("c", 1, ""), Set("c", 1, "", Family::kLock)}}, {"t", "b", {}, {Set("c", 1, "")}}});
    for (const auto& result : results) ASSERT_TRUE(finished_or_gone(result.status())) << result.status();
    const absl::Status read = store_->Read({{"t", "a", Everything()}}).status();
    ASSERT_TRUE(finished_or_gone(read)) << read;
    absl::StatusOr<ScanPage> page = store_->Scan(ScanOf(RowRange::All(), Everything()));
    ASSERT_TRUE(finished_or_gone(page.status())) << page.status();
    const absl::Status sample = store_->SampleRowKeys("t").status();
    ASSERT_TRUE(finished_or_gone(sample)) << sample;
  };
  RunTogether({dropper}, {user, user});
  ASSERT_THAT(store_->DropTable("t"), IsOk());
  ASSERT_THAT(store_->CreateTable({"t", ""}), IsOk());
  EXPECT_EQ(Scan(), "") << "a write to the dropped table came through to the new one";
}

// "Finish before": a read of a table while it is dropped returns the table's content.
TEST_P(StoreTest, AReadWhileItsTableIsDroppedSeesWholeRowsOrNoTable) {
  const std::vector<Selector> by_name = {{Family::kData, "c", {}, 1}, {Family::kLock, "c", {}, 1}};
  const std::vector<Selector> by_family = {Columns(Family::kData), Columns(Family::kLock)};
  for (int round = 0; round < 10; ++round) {
    ASSERT_THAT(store_->CreateTable({"u", ""}), IsOk());
    ASSERT_THAT(store_->Mutate({{"u", "r", {}, {Set("c", 1, ""), Set("c", 1, "", Family::kLock)}}}).at(0), IsOk());
    const auto reader = [&](const std::vector<Selector>& selectors) {
      absl::StatusOr<std::vector<Row>> rows = store_->Read({{"u", "r", selectors}});
      if (absl::IsNotFound(rows.status())) return;
      ASSERT_THAT(rows, IsOk());
      ASSERT_EQ(ToText(*rows), "r{data:c@1= lock:c@1=}");
    };
    const auto scanner = [&] {
      absl::StatusOr<ScanPage> page = store_->Scan({"u", RowRange::All(), by_family, 10});
      if (absl::IsNotFound(page.status())) return;
      ASSERT_THAT(page, IsOk());
      ASSERT_EQ(ToText(page->rows), "r{data:c@1= lock:c@1=}");
    };
    RunTogether({[&] { ASSERT_THAT(store_->DropTable("u"), IsOk()); }},
                {[&] { reader(by_name); }, [&] { reader(by_name); }, [&] { reader(by_family); }, scanner});
    if (HasFatalFailure()) return;
  }
}

TEST_P(StoreTest, OfManyCreatorsAndDroppersExactlyOneWins) {
  std::atomic<int> created = 0, dropped = 0;
  const auto creator = [&] {
    const absl::Status status = store_->CreateTable({"u", ""});
    ASSERT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
    created += status.ok();
  };
  const auto dropper = [&] {
    const absl::Status status = store_->DropTable("u");
    ASSERT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    dropped += status.ok();
  };
  for (int round = 1; round <= 5; ++round) {
    RunTogether({creator, creator, creator, creator}, {});
    EXPECT_EQ(created, round);
    RunTogether({dropper, dropper, dropper, dropper}, {});
    EXPECT_EQ(dropped, round);
  }
}

}  // namespace
}  // namespace percolator
