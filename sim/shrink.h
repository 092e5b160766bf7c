// SPDX-License-Identifier: Apache-2.0

// Makes a failing run smaller: fewer kinds of faults, less work, fewer single faults, as long as the same checker
// reports a failure. The rest is easier to understand.

#ifndef PERCOLATOR_SIM_SHRINK_H_
#define PERCOLATOR_SIM_SHRINK_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/chance.h"
#include "sim/plan.h"

namespace percolator::sim {

// A plan, and what was removed from it: enough to run it again.
struct Scenario {
  Plan plan;
  std::vector<std::string> rates_off;
  std::vector<FaultId> suppressed;
  bool only_history = false;
  std::vector<std::string> changes;  // of the plan, as options of the command line: "--keys=2"
};

// Switches a kind of fault off. Returns false if the name is unknown.
bool SwitchOff(std::string_view rate, Plan* plan);

// Runs a scenario. If it fails as the first one did, returns the faults that happened in it; otherwise nullopt.
using Attempt = std::function<std::optional<std::vector<FaultId>>(const Scenario&)>;
// Takes some hundreds of runs. Returns a scenario that does not fail unchanged.
Scenario Shrink(const Scenario& failing, const Attempt& attempt);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_SHRINK_H_
