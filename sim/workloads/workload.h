// Workload: what the clients of a simulated run do, and what must be true at any time and in the end.
//
// A run has five phases (sim/run.h): set up, run under faults, heal, drain, check. All that a workload reads and writes is
// recorded, and judged by the checkers of sim/history; what it knows besides about its data (a sum, a ring) it checks
// itself and tells with Scene::Fail.

#ifndef PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_
#define PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "percolator/status.h"
#include "sim/plan.h"
#include "sim/workloads/scene.h"

namespace percolator::sim {

class Workload {
 public:
  virtual ~Workload() = default;

  // Every cell it may ever write, in their order.
  virtual std::vector<CellName> Cells(const Plan& plan) const { return plan.Cells(); }
  // Writes the data that a run begins with. Nothing fails here.
  virtual void SetUp(Actor& /*actor*/) {}
  // A piece of work. Called by many tasks; any call of the cluster may fail.
  virtual void Step(Actor& actor) = 0;
  // Looks at the end, when all others are gone and nothing fails any more.
  virtual void Check(Actor& /*actor*/) {}
  // Whether its values are lists that are only appended to: then the graph checker judges too.
  virtual bool lists() const { return false; }
};

struct WorkloadKind {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Workload> (*make)();
};
std::span<const WorkloadKind> AllWorkloads();
// Null: there is none of that name.
std::unique_ptr<Workload> NewWorkload(std::string_view name);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_
