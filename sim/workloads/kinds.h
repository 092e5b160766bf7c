// SPDX-License-Identifier: Apache-2.0

// All workloads, each in its own file.

#ifndef PERCOLATOR_SIM_WORKLOADS_KINDS_H_
#define PERCOLATOR_SIM_WORKLOADS_KINDS_H_

#include <memory>

#include "sim/workloads/workload.h"

namespace percolator::sim {

std::unique_ptr<Workload> NewAppend();
std::unique_ptr<Workload> NewBank();
std::unique_ptr<Workload> NewChain();
std::unique_ptr<Workload> NewCycle();
std::unique_ptr<Workload> NewDedup();
std::unique_ptr<Workload> NewDoctors();
std::unique_ptr<Workload> NewLongReader();
std::unique_ptr<Workload> NewLoop();
std::unique_ptr<Workload> NewOnce();
std::unique_ptr<Workload> NewRegisters();
std::unique_ptr<Workload> NewRows();
std::unique_ptr<Workload> NewWeak();

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_WORKLOADS_KINDS_H_
