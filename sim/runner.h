// SPDX-License-Identifier: Apache-2.0

// Runs many seeds, in several processes, and reports.
//
// A seed runs in a child process: a crash or an endless loop is a failure of that seed like any other. The first
// failures are reported in full: the checker's finding, the plan, the last events, and the command that shows them
// again.

#ifndef PERCOLATOR_SIM_RUNNER_H_
#define PERCOLATOR_SIM_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/run.h"
#include "sim/shrink.h"

namespace percolator::sim {

struct RunnerOptions {
  uint64_t first = 1;
  uint64_t seeds = 1'000;
  Duration time{0};  // if not zero, run as many seeds as fit into it
  size_t jobs = 1;
  bool twice = false;          // run each seed twice, and compare
  bool until_failure = false;  // run silently, and find the smallest seed that fails
  std::string record;          // a file to which each failure adds a line; empty: none
  // The scenario of a seed.
  std::function<Scenario(uint64_t seed)> scenario;
  // Further text for the line about a seed that fails; may be null.
  std::function<std::string(uint64_t seed)> about = nullptr;
};

// The result of one seed.
struct SeedResult {
  uint64_t seed = 0;
  uint64_t hash = 0;
  std::string checker;  // empty: no finding
  RunCounts counts;
};

struct Summary {
  uint64_t seeds = 0;
  uint64_t failures = 0;
  uint64_t hash = 0;                        // of all seeds, in any order
  std::optional<SeedResult> first_failure;  // of the smallest seed
  RunCounts counts;
  CoverageTable coverage;
  Duration took{0};
};

Summary RunSeeds(const RunnerOptions& options);

// The number of lines of the trace that are shown for a failure.
inline constexpr size_t kTraceLines = 60;

// "workload bank; again: percsim --seed=7 --workload=bank".
std::string AboutScenario(const Scenario& scenario, const std::string& program);
// Prints everything about a seed that failed.
void ExplainResult(const Scenario& scenario, const SeedResult& result, const std::string& program);
// Runs the scenario in this process, with a trace, and prints everything about it. Returns whether it failed.
bool Explain(const Scenario& scenario, const std::string& program, size_t trace_lines);
// Finds a smaller scenario that fails by the same checker, and explains that one.
void ShrinkAndExplain(const Scenario& scenario, const std::string& program);

// Prints the amount of work, a line for each kind, and a last line for programs. `table`: prints the whole coverage.
void Print(const Summary& summary, bool table);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_RUNNER_H_
