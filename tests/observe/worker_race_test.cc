// SPDX-License-Identifier: Apache-2.0

// Many workers at once, without claims that separate them: for each change at most one run commits (N2, W6).

#include <vector>

#include "tests/observe/worker_fixture.h"

namespace percolator {
namespace {

class WorkerRaceTest : public WorkerFixture {
 protected:
  void Race(const WorkerOptions& options) {
    constexpr int kWorkers = 8;
    constexpr int kRows = 8;
    constexpr int kRounds = 6;
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.push_back(std::make_unique<Worker>(*cluster_, options));
      workers.back()->Observe(Spec("first", "contents", CountIn("middle")));
      workers.back()->Observe(Spec("second", "contents", CountIn("second_count")));
      workers.back()->Observe(Spec("last", "middle", CountIn("last_count")));
      ASSERT_THAT(workers.back()->Start(), IsOk());
    }
    for (int round = 1; round <= kRounds; ++round) {
      for (int i = 0; i < kRows; ++i) Set(StrCat("d", i), "contents", std::to_string(round));
      ASSERT_THAT(workers[static_cast<size_t>(round) % kWorkers]->WaitUntilIdle(kLong), IsOk());
      for (int i = 0; i < kRows; ++i) {
        EXPECT_EQ(Get(StrCat("d", i), "middle"), std::to_string(round));
        EXPECT_EQ(Get(StrCat("d", i), "second_count"), std::to_string(round));
        EXPECT_EQ(Get(StrCat("d", i), "last_count"), std::to_string(round));
      }
    }
    for (const auto& worker : workers) EXPECT_THAT(worker->Stop(), IsOk());
    int64_t commits = 0;
    for (const auto& worker : workers) {
      for (const ObserverMetrics& metrics : worker->metrics()) commits += metrics.commits;
    }
    EXPECT_EQ(commits, 3 * kRows * kRounds);
    EXPECT_EQ(Backlogged(), 0U);
  }
};
INSTANTIATE_TEST_SUITE_P(Clusters, WorkerRaceTest, kClusterKinds, KindName);

TEST_P(WorkerRaceTest, WithoutClaims) {
  WorkerOptions options = Options();
  options.claims = false;
  Race(options);
}

TEST_P(WorkerRaceTest, WithClaims) { Race(Options()); }

TEST_P(WorkerRaceTest, ByScansOnly) {
  WorkerOptions options = Options();
  options.hints = false;
  Race(options);
}

// Changes come while observers run: the observer counts at most one run per change (N7), and the last change is seen.
TEST_P(WorkerRaceTest, WhileWritersContinue) {
  constexpr int kWrites = 150;
  WorkerOptions options = Options();
  options.claims = false;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<Worker>(*cluster_, options));
    workers.back()->Observe(Spec("count", "contents", CountIn("count")));
    workers.back()->Observe(Spec("copy", "contents", CopyTo("copied")));
    ASSERT_THAT(workers.back()->Start(), IsOk());
  }
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([this, w] {
      for (int i = 1; i <= kWrites; ++i) Set(StrCat("d", w), "contents", std::to_string(i));
    });
  }
  for (std::thread& writer : writers) writer.join();
  ASSERT_THAT(workers[0]->WaitUntilIdle(kLong), IsOk());
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(Get(StrCat("d", w), "copied"), std::to_string(kWrites));
    EXPECT_LE(std::stoi(Get(StrCat("d", w), "count")), kWrites);
    EXPECT_GE(std::stoi(Get(StrCat("d", w), "count")), 1);
  }
}

}  // namespace
}  // namespace percolator
