// SPDX-License-Identifier: Apache-2.0

// Kernel: the parts that everything in a simulated world shares.

#ifndef PERCOLATOR_SIM_KERNEL_H_
#define PERCOLATOR_SIM_KERNEL_H_

#include <cstdint>

#include "sim/chance.h"
#include "sim/coverage.h"
#include "sim/faults.h"
#include "sim/scheduler.h"
#include "sim/trace.h"

namespace percolator::sim {

struct Kernel {
  Kernel(uint64_t seed, const Faults& with_faults) : faults(with_faults), chance(seed), scheduler(&chance, &trace) {}

  Duration now() const { return scheduler.now(); }

  Faults faults;  // may be changed while the world runs
  Chance chance;
  Trace trace;
  Scheduler scheduler;
  StepFinder steps;
  CoveredPairs covered;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_KERNEL_H_
