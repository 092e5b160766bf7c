#include "sim/workloads/kinds.h"

namespace percolator::sim {
namespace {

constexpr WorkloadKind kKinds[] = {
    {"append", "lists that are only appended to, for the graph checker", NewAppend},
    {"bank", "transfers; the sum of all accounts never changes", NewBank},
    {"cycle", "a ring of pointers whose order changes, and stays one ring", NewCycle},
    {"dedup", "figure 2 of the paper: one canonical document for each content", NewDedup},
    {"doctors", "one of a group stays on call: write skew, prevented by Verify", NewDoctors},
    {"long_reader", "snapshots held while versions are overwritten and collected", NewLongReader},
    {"registers", "reads and writes of all kinds, and a counter", NewRegisters},
    {"rows", "rows that come and go, and scans over them", NewRows},
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
