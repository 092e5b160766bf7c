// SPDX-License-Identifier: Apache-2.0

#include "sim/mutants.h"

namespace percolator::sim {

bool SwitchOn(std::string_view name) {
  bool found = false;
  for (const Mutant& mutant : AllMutants()) {
    *mutant.on = mutant.name == name;
    found = found || *mutant.on;
  }
  return found;
}

}  // namespace percolator::sim
