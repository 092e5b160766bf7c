// SPDX-License-Identifier: Apache-2.0

#include "sim/workloads/kinds.h"

namespace percolator::sim {
namespace {

constexpr WorkloadKind kKinds[] = {
    {"append", "lists that are only appended to, for the graph checker", false, NewAppend},
    {"bank", "transfers; the sum of all accounts never changes", false, NewBank},
    {"cycle", "a ring of pointers whose order changes, and stays one ring", false, NewCycle},
    {"dedup", "figure 2 of the paper: one canonical document for each content", false, NewDedup},
    {"doctors", "one of a group stays on call: write skew, prevented by Verify", false, NewDoctors},
    {"long_reader", "snapshots held while versions are overwritten and collected", false, NewLongReader},
    {"registers", "reads and writes of all kinds, and a counter", false, NewRegisters},
    {"rows", "rows that come and go, and scans over them", false, NewRows},
    {"chain", "three observers one after another, and their exact fixpoint", true, NewChain},
    {"loop", "an observer that changes what it observes, and the guard against cycles", true, NewLoop},
    {"once", "observers that count: at most one commit for each change", true, NewOnce},
    {"weak", "a queue with many writers, emptied by a weakly notified observer", true, NewWeak},
};

}  // namespace

std::span<const WorkloadKind> AllWorkloads() { return kKinds; }

std::unique_ptr<Workload> NewWorkload(std::string_view name) {
  for (const WorkloadKind& kind : kKinds) {
    if (kind.name == name) return kind.make();
  }
  return nullptr;
}

}  // namespace percolator::sim
