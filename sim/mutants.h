// The mutants of src/base/mutant.h by name. Only percsim_mutants has them: everywhere else they can't be switched on.

#ifndef PERCOLATOR_SIM_MUTANTS_H_
#define PERCOLATOR_SIM_MUTANTS_H_

#include <span>
#include <string_view>

namespace percolator::sim {

struct MutantName {
  std::string_view name;
  std::string_view what;
};
std::span<const MutantName> AllMutants();

bool HasMutants();
// This one and no other. False: there is none of that name.
bool SwitchOn(std::string_view name);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_MUTANTS_H_
