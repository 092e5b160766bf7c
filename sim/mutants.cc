#include "sim/mutants.h"

#include <cstddef>

#include "src/base/mutant.h"

namespace percolator::sim {
namespace {

constexpr MutantName kNames[] = {
#define PERCOLATOR_MUTANT_ENTRY(name, text) {#name, text},
    PERCOLATOR_MUTANT_LIST(PERCOLATOR_MUTANT_ENTRY)
#undef PERCOLATOR_MUTANT_ENTRY
};

}  // namespace

std::span<const MutantName> AllMutants() { return kNames; }

bool HasMutants() {
#ifdef PERCOLATOR_MUTANTS
  return true;
#else
  return false;
#endif
}

bool SwitchOn(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i].name != name) continue;
#ifdef PERCOLATOR_MUTANTS
    g_mutant = static_cast<Mutant>(i + 1);  // 0 is none
#endif
    return HasMutants();
  }
  return false;
}

}  // namespace percolator::sim
