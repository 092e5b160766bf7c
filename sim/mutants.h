// The mutants of this program: deliberate bugs, to see whether the tests notice (docs/testing.md).
//
// percsim_mutants has those of sim/mutants/: its list is made by sim/mutate.py. percsim has none.

#ifndef PERCOLATOR_SIM_MUTANTS_H_
#define PERCOLATOR_SIM_MUTANTS_H_

#include <span>
#include <string_view>

namespace percolator::sim {

struct Mutant {
  std::string_view name;
  std::string_view what;  // is wrong
  bool* on;
};
std::span<const Mutant> AllMutants();

// Switches this mutant on, and all others off. Returns false if there is none of that name.
bool SwitchOn(std::string_view name);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_MUTANTS_H_
