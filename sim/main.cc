// SPDX-License-Identifier: Apache-2.0

// percsim: runs the transaction code in simulated worlds, one for each seed. See docs/testing.md, "Simulator".

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "percolator/spi/runtime.h"
#include "sim/mutants.h"
#include "sim/runner.h"
#include "sim/workloads/workload.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

struct Arguments {
  std::optional<uint64_t> seed;
  uint64_t first = 1;
  uint64_t seeds = 1'000;
  double minutes = 0;
  bool fresh = false;
  std::string record;
  size_t jobs = 1;
  std::string workload;
  bool check_determinism = false;
  bool trace = false;
  bool shrink = false;
  bool only_history = false;
  bool coverage = false;
  int weights = 2;
  bool list = false;
  std::string mutant;
  std::vector<std::string> off;
  std::vector<std::string> suppress;
  std::optional<size_t> processes, tasks, steps, keys, cells;
};

void Change(const std::optional<size_t>& value, std::string_view name, size_t Plan::*field, Scenario* scenario) {
  if (!value.has_value()) return;
  scenario->plan.*field = *value;
  scenario->changes.push_back(StrCat("--", name, "=", *value));
}

Scenario ScenarioOf(const Arguments& arguments, uint64_t seed) {
  Scenario scenario{.plan = Plan::Of(seed, arguments.workload, static_cast<Plan::Weights>(arguments.weights)),
                    .rates_off = arguments.off,
                    .suppressed = {},
                    .only_history = arguments.only_history,
                    .changes = {}};
  for (const std::string& rate : arguments.off) SwitchOff(rate, &scenario.plan);
  for (const std::string& text : arguments.suppress) {
    FaultId fault;
    if (ParseFaultId(text, &fault)) scenario.suppressed.push_back(fault);
  }
  if (arguments.weights != Arguments().weights) scenario.changes.push_back(StrCat("--weights=", arguments.weights));
  if (!arguments.mutant.empty()) scenario.changes.push_back(StrCat("--mutant=", arguments.mutant));
  Change(arguments.processes, "processes", &Plan::processes, &scenario);
  Change(arguments.tasks, "tasks", &Plan::tasks, &scenario);
  Change(arguments.steps, "steps", &Plan::steps, &scenario);
  Change(arguments.keys, "keys", &Plan::keys, &scenario);
  Change(arguments.cells, "cells", &Plan::cells, &scenario);
  return scenario;
}

// Fresh seeds begin above all seeds that are named anywhere, and are still short enough to type.
uint64_t FreshSeed() {
  constexpr uint64_t kLeast = 2'000'000'000;
  constexpr uint64_t kChoices = 1'000'000'000'000'000;
  return kLeast + Runtime::Real()->Random() % kChoices;
}

constexpr char kFooter[] = R"(Examples:
  percsim --seeds 10000 --jobs 4             seeds 1 to 10,000
  percsim --minutes 5 --fresh --jobs 4       seeds that were not run before
  percsim --seed 17                          one seed again
  percsim --seed 17 --shrink                 a smaller run that fails in the same way
  percsim_mutants --mutant all               checks that the simulator finds each deliberate bug

A seed gives the same run every time. A failure ends with the command that reproduces it (docs/testing.md).
Exit codes: 0 no seed failed; with --mutant: every bug was found. 1 a seed failed, or a bug was not found.
Others: bad usage.)";

RunnerOptions OptionsOf(const Arguments& arguments, const std::string& program) {
  return {
      .first = arguments.first,
      .seeds = arguments.seeds,
      .time = Duration(static_cast<int64_t>(arguments.minutes * 60e6)),
      .jobs = arguments.jobs,
      .twice = arguments.check_determinism,
      .until_failure = false,
      .record = arguments.record,
      .scenario = [&arguments](uint64_t seed) { return ScenarioOf(arguments, seed); },
      .about = [&arguments, program](uint64_t seed) { return AboutScenario(ScenarioOf(arguments, seed), program); }};
}

// The first wrong name on the command line, as an error message. Empty if there is none.
std::string WrongName(const Arguments& arguments) {
  if (!arguments.workload.empty() && NewWorkload(arguments.workload) == nullptr) {
    return StrCat("there is no workload ", arguments.workload, "; --list lists the workloads");
  }
  for (const std::string& rate : arguments.off) {
    Plan plan;
    if (!SwitchOff(rate, &plan)) return StrCat("there is no kind of fault ", rate);
  }
  for (const std::string& text : arguments.suppress) {
    FaultId fault;
    if (!ParseFaultId(text, &fault)) {
      return StrCat("invalid fault ", text, ": write ACTOR/SITE/NUMBER as a failure prints it, such as 4/Crash/17");
    }
  }
  if (arguments.mutant.empty()) return "";
  if (AllMutants().empty()) return "this program has no mutants: use percsim_mutants";
  return arguments.mutant == "all" || SwitchOn(arguments.mutant)
             ? ""
             : StrCat("there is no mutant ", arguments.mutant, "; --list lists the mutants");
}

void List() {
  std::puts("workloads:");
  for (const WorkloadKind& kind : AllWorkloads()) {
    std::printf("  %-28.*s %.*s\n", static_cast<int>(kind.name.size()), kind.name.data(),
                static_cast<int>(kind.what.size()), kind.what.data());
  }
  if (!AllMutants().empty()) std::puts("mutants:");
  for (const Mutant& m : AllMutants()) {
    std::printf("  %-28.*s %.*s\n", static_cast<int>(m.name.size()), m.name.data(), static_cast<int>(m.what.size()),
                m.what.data());
  }
}

// Runs each mutant until it is caught, or for all seeds. Prints a line for each, as in the table of docs/testing.md.
int RunMutants(const Arguments& arguments, const std::string& program) {
  int caught = 0;
  int survived = 0;
  for (const Mutant& m : AllMutants()) {
    if (arguments.mutant != "all" && m.name != arguments.mutant) continue;
    SwitchOn(m.name);
    RunnerOptions options = OptionsOf(arguments, program);
    options.until_failure = true;
    const Summary summary = RunSeeds(options);
    const std::optional<SeedResult>& failure = summary.first_failure;
    ++(failure.has_value() ? caught : survived);
    const std::string by = failure.has_value() ? failure->checker : "SURVIVED";
    const uint64_t needed = failure.has_value() ? failure->seed - arguments.first + 1 : summary.seeds;
    std::printf("%-28.*s %-28s %6" PRIu64 " seeds\n", static_cast<int>(m.name.size()), m.name.data(), by.c_str(),
                needed);
    std::fflush(stdout);
  }
  std::printf("mutants caught=%d survived=%d\n", caught, survived);
  return survived == 0 && caught > 0 ? 0 : 1;
}

int RunAll(const Arguments& arguments, const std::string& program) {
  const Summary summary = RunSeeds(OptionsOf(arguments, program));
  if (summary.first_failure.has_value()) {
    ExplainResult(ScenarioOf(arguments, summary.first_failure->seed), *summary.first_failure, program);
  }
  Print(summary, arguments.coverage);
  return summary.failures == 0 && summary.seeds > 0 ? 0 : 1;
}

int RunOne(const Arguments& arguments, const std::string& program) {
  const Scenario scenario = ScenarioOf(arguments, *arguments.seed);
  if (arguments.shrink) {
    ShrinkAndExplain(scenario, program);
    return 1;
  }
  return Explain(scenario, program, arguments.trace ? SIZE_MAX : kTraceLines) ? 1 : 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs the transaction code of Percolator in simulated worlds, one for each seed.", "percsim");
  app.footer(kFooter);
  app.add_option("--seed", arguments.seed, "Run only this seed, and print its end");
  app.add_option("--first", arguments.first, "First seed")->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "Number of seeds")->capture_default_str();
  app.add_option("--minutes", arguments.minutes, "Run as many seeds as fit into this many minutes, instead of --seeds");
  app.add_flag("--fresh", arguments.fresh, "Choose the first seed at random, and print it")
      ->excludes(app.get_option("--first"));
  app.add_option("--record", arguments.record, "Append a line to this file for each seed that fails");
  app.add_option("--jobs", arguments.jobs, "Number of processes to run seeds in")->capture_default_str();
  app.add_option("--workload", arguments.workload, "Run this workload, instead of the one that the seed chooses");
  app.add_option(
         "--weights", arguments.weights,
         "How faults are distributed: 2 makes every fault meet every step of the protocol; 1 weighs kinds of calls, to "
         "reproduce old seeds")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  app.add_flag("--check-determinism", arguments.check_determinism, "Run each seed twice and compare the runs");
  app.add_flag("--trace", arguments.trace, "With --seed: print the whole trace, not only its end");
  app.add_flag("--shrink", arguments.shrink, "With --seed: search for a smaller run that fails in the same way");
  app.add_flag("--only-history", arguments.only_history,
               "Check only the histories of clients, not the state of the store");
  app.add_flag("--coverage", arguments.coverage,
               "Print how many seeds had each pair of a fault and a step of the protocol");
  app.add_flag("--list", arguments.list, "List the workloads, and the mutants of this program");
  app.add_option(
      "--mutant", arguments.mutant,
      "Switch this deliberate bug on, and run until a seed fails; all: each bug in turn (percsim_mutants only)");
  app.add_option("--off", arguments.off, "Kinds of faults to switch off")->delimiter(',');
  app.add_option("--suppress", arguments.suppress, "Single faults to switch off, such as 4/Crash/17")->delimiter(',');
  app.add_option("--processes", arguments.processes,
                 "Number of processes; like the options below, instead of what the seed chooses");
  app.add_option("--tasks", arguments.tasks, "Number of concurrent tasks of a process");
  app.add_option("--steps", arguments.steps, "Number of steps of a task");
  app.add_option("--keys", arguments.keys, "Number of keys");
  app.add_option("--cells", arguments.cells, "Maximum number of cells of a transaction");
  CLI11_PARSE(app, argc, argv);

  if (const std::string wrong = WrongName(arguments); !wrong.empty()) {
    std::fprintf(stderr, "percsim: %s\n", wrong.c_str());
    return 2;
  }
  if (arguments.list) {
    List();
    return 0;
  }
  if (arguments.fresh) {
    arguments.first = FreshSeed();
    std::printf("first seed %" PRIu64 "\n", arguments.first);
    std::fflush(stdout);
  }
  if (arguments.seed.has_value()) return RunOne(arguments, argv[0]);
  return arguments.mutant.empty() ? RunAll(arguments, argv[0]) : RunMutants(arguments, argv[0]);
}

}  // namespace
}  // namespace percolator::sim

int main(int argc, char** argv) { return percolator::sim::Main(argc, argv); }
