// SPDX-License-Identifier: Apache-2.0

// The mutants of this program: deliberate bugs, to check that the tests detect them (docs/testing.md).
//
// percsim_mutants has those of sim/mutants/: sim/mutate.py writes its list. percsim has none.

#ifndef PERCOLATOR_SIM_MUTANTS_H_
#define PERCOLATOR_SIM_MUTANTS_H_

#include <span>
#include <string_view>

namespace percolator::sim {

struct Mutant {
  std::string_view name;
  std::string_view what;  // the bug
  bool* on;
};
std::span<const Mutant> AllMutants();

// Switches this mutant on and all others off. Returns false if it is unknown.
bool SwitchOn(std::string_view name);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_MUTANTS_H_
