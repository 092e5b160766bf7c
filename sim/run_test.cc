// SPDX-License-Identifier: Apache-2.0

#include "sim/run.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "sim/runner.h"
#include "sim/shrink.h"
#include "sim/workloads/workload.h"

namespace percolator::sim {
namespace {

TEST(Run, OneSeedIsOneRun) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const RunResult once = RunPlan(Plan::Of(seed));
    const RunResult again = RunPlan(Plan::Of(seed), {.trace_lines = 5});
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_FALSE(again.trace.empty());
    hashes.insert(once.hash);
  }
  EXPECT_EQ(hashes.size(), 10U);
}

TEST(Run, EveryWorkloadMakesProgress) {
  for (const WorkloadKind& kind : AllWorkloads()) {
    RunCounts counts;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const RunResult result = RunPlan(Plan::Of(seed, kind.name));
      EXPECT_FALSE(result.failure.has_value()) << kind.name << " " << seed << ": " << result.failure->text;
      counts.Add(result.counts);
    }
    EXPECT_GT(counts.committed, 20U) << kind.name;
    EXPECT_GT(counts.transactions, counts.committed) << kind.name;
  }
}

// A swarm that never reaches a part of the protocol does not test it.
TEST(Run, TheSwarmReachesEveryPartOfTheProtocol) {
  RunCounts counts;
  uint64_t planned = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Plan plan = Plan::Of(seed);
    planned += plan.processes + plan.workers + 3;
    counts.Add(RunPlan(plan).counts);
  }
  EXPECT_GT(counts.processes, planned) << "no process died";
  EXPECT_GT(counts.faults, 1000U);
  EXPECT_GT(counts.unknown, 0U);
  EXPECT_GT(counts.runs, 100U);
  EXPECT_GT(counts.failed, 0U);
  EXPECT_GT(counts.write_skews, 0U);
  EXPECT_GT(counts.cluster.conflicts, 0U);
  EXPECT_GT(counts.cluster.unknown_outcomes, 0U);
  EXPECT_GT(counts.cluster.foreign_locks_found, 0U);
  EXPECT_GT(counts.cluster.rolled_forward, 0U);
  EXPECT_GT(counts.cluster.rolled_back, 0U);
  EXPECT_GT(counts.cluster.versions_collected, 0U);
  EXPECT_GT(counts.cluster.prefetched_cells_used, 0U);
}

TEST(Run, FaultsThatAreSuppressedDoNotHappen) {
  const Plan plan = Plan::Of(3);
  const RunResult result = RunPlan(plan);
  ASSERT_FALSE(result.happened.empty());
  const FaultId first = result.happened.front();
  const RunResult without = RunPlan(plan, {.suppressed = {first}});
  EXPECT_EQ(std::count(without.happened.begin(), without.happened.end(), first), 0);
  EXPECT_NE(without.hash, result.hash);
}

Scenario OfSeed(uint64_t seed) { return {.plan = Plan::Of(seed)}; }

TEST(Runner, RunsEachSeedOnceInAnyNumberOfJobs) {
  const Summary one = RunSeeds({.first = 5, .seeds = 9, .jobs = 1, .scenario = OfSeed});
  const Summary three = RunSeeds({.first = 5, .seeds = 9, .jobs = 3, .twice = true, .scenario = OfSeed});
  EXPECT_EQ(one.seeds, 9U);
  EXPECT_EQ(three.seeds, 9U);
  EXPECT_EQ(one.hash, three.hash);
  EXPECT_EQ(one.failures + three.failures, 0U);
  EXPECT_EQ(one.counts.transactions, three.counts.transactions);
}

TEST(Runner, ASeedThatCrashesIsAFailureAndTheOthersContinue) {
  const auto crash_at_7 = [](uint64_t seed) {
    if (seed == 7) std::_Exit(3);  // in the child
    return OfSeed(seed);
  };
  const Summary summary = RunSeeds({.first = 5, .seeds = 6, .jobs = 2, .scenario = crash_at_7});
  EXPECT_EQ(summary.seeds, 6U);
  EXPECT_EQ(summary.failures, 1U);
  ASSERT_TRUE(summary.first_failure.has_value());
  EXPECT_EQ(summary.first_failure->seed, 7U);
  EXPECT_EQ(summary.first_failure->checker, "crash");
}

TEST(Runner, StopsAtTheSmallestSeedThatFails) {
  const auto crash_from_6 = [](uint64_t seed) {
    if (seed >= 6) std::_Exit(3);
    return OfSeed(seed);
  };
  const Summary summary =
      RunSeeds({.first = 1, .seeds = 1000, .jobs = 2, .until_failure = true, .scenario = crash_from_6});
  EXPECT_LE(summary.seeds, 7U);  // 1 to 6, and perhaps 7 by the other job
  ASSERT_TRUE(summary.first_failure.has_value());
  EXPECT_EQ(summary.first_failure->seed, 6U);
}

TEST(Shrink, LeavesOnlyTheNeededFaults) {
  Scenario failing = OfSeed(1);
  failing.plan.faults.rates = {.request_lost = 0.5, .duplicate = 0.1, .crash = 0.1};
  failing.plan.processes = 4;
  failing.plan.steps = 40;
  std::vector<FaultId> happened;
  for (uint64_t n = 0; n < 20; ++n) happened.push_back({4, Site::kCrash, n});
  // Fails only with crashes, five steps, and the faults 3 and 11.
  const Attempt attempt = [&](const Scenario& s) -> std::optional<std::vector<FaultId>> {
    const auto suppressed = [&](const FaultId& fault) {
      return std::find(s.suppressed.begin(), s.suppressed.end(), fault) != s.suppressed.end();
    };
    if (s.plan.faults.rates.crash == 0 || s.plan.steps < 5) return std::nullopt;
    if (suppressed(happened[3]) || suppressed(happened[11])) return std::nullopt;
    return happened;
  };
  const Scenario small = Shrink(failing, attempt);
  EXPECT_TRUE(attempt(small).has_value());
  EXPECT_EQ(small.plan.faults.rates.request_lost, 0);
  EXPECT_EQ(small.plan.faults.rates.duplicate, 0);
  EXPECT_EQ(small.plan.processes, 1U);
  EXPECT_EQ(small.plan.steps, 5U);
  EXPECT_EQ(small.suppressed.size(), 18U);
  EXPECT_EQ(std::count(small.changes.begin(), small.changes.end(), "--steps=5"), 1);
  EXPECT_EQ(std::count(small.rates_off.begin(), small.rates_off.end(), "duplicate"), 1);
}

TEST(Shrink, KnowsTheNamesOfFaults) {
  Plan plan;
  EXPECT_FALSE(SwitchOff("nonsense", &plan));
  for (const RateField& field : RateFields()) EXPECT_TRUE(SwitchOff(field.name, &plan)) << field.name;
}

}  // namespace
}  // namespace percolator::sim
