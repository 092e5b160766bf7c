// SPDX-License-Identifier: Apache-2.0

// Switches on the mutant that the environment names: sim/mutants.h.

#include <cstdio>
#include <cstdlib>

#include "sim/mutants.h"

namespace percolator::sim {
namespace {

const bool kSwitched = [] {
  const char* const name = std::getenv("PERCOLATOR_MUTANT");
  if (name == nullptr) return false;
  if (!SwitchOn(name)) {
    std::fprintf(stderr, "unknown mutant %s\n", name);
    std::_Exit(0);  // success, because each mutant's run must fail
  }
  return true;
}();

}  // namespace
}  // namespace percolator::sim
