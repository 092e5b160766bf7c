// Runs many seeds, in several processes, and reports.
//
// A seed runs in a child process: one that crashes or goes round in circles is a failure of that seed like any other. The
// first failures are told in full: what the checker says, the plan, the last events, and the command that shows them again.

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
  Duration time{0};  // not zero: as many seeds as fit into it
  size_t jobs = 1;
  bool twice = false;          // each seed, and compares
  bool until_failure = false;  // in silence, and the smallest seed that fails
  std::string record;          // a file to which a line is added for each failure; empty: none
  // What to run for a seed.
  std::function<Scenario(uint64_t seed)> scenario;
  // What the line about a seed that fails says besides; may be null.
  std::function<std::string(uint64_t seed)> about = nullptr;
};

// What one seed came to.
struct SeedResult {
  uint64_t seed = 0;
  uint64_t hash = 0;
  std::string checker;  // empty: nothing was found
  RunCounts counts;
};

struct Summary {
  uint64_t seeds = 0;
  uint64_t failures = 0;
  uint64_t hash = 0;                        // of all seeds, in whatever order
  std::optional<SeedResult> first_failure;  // the smallest seed
  RunCounts counts;
  CoverageTable coverage;
  Duration took{0};
};

Summary RunSeeds(const RunnerOptions& options);

// Lines of the trace that are shown of a failure.
inline constexpr size_t kTraceLines = 60;

// "workload bank; again: percsim --seed=7 --workload=bank".
std::string AboutScenario(const Scenario& scenario, const std::string& program);
// Prints all there is to say of a seed that failed.
void ExplainResult(const Scenario& scenario, const SeedResult& result, const std::string& program);
// Runs the scenario in this process, with a trace, and prints all there is to say of it. Returns whether it failed.
bool Explain(const Scenario& scenario, const std::string& program, size_t trace_lines);
// Finds a smaller scenario that fails by the same checker, and explains that.
void ShrinkAndExplain(const Scenario& scenario, const std::string& program);

// How much was done: a line for each kind of thing; and the last line, for programs. `table`: with all of the coverage.
void Print(const Summary& summary, bool table);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_RUNNER_H_
