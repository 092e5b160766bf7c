// SPDX-License-Identifier: Apache-2.0

// Workload: what the clients of a simulated run do, and the conditions that must hold at any time and at the end.
//
// A run has five phases (sim/run.h): set up, run under faults, heal, drain, check. All reads and writes of a workload
// are recorded, and judged by the checkers of sim/history. A workload checks further conditions on its data (a sum, a
// ring) itself and reports failures with Scene::Fail.
//
// A workload may have observers. Then processes with workers take part in the run, and after the drain there is one
// more phase, in which workers run until nothing is left to be observed (sim/run.h).

#ifndef PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_
#define PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "percolator/observer.h"
#include "percolator/status.h"
#include "sim/plan.h"
#include "sim/workloads/scene.h"
#include "src/observe/registry.h"

namespace percolator::sim {

struct WorkloadObserver {
  ObserverInfo info;
  int attempts = 16;  // ObserverSpec::attempts
  std::function<absl::Status(Recorded& t, const Notification& notification)> run;
};

class Workload {
 public:
  virtual ~Workload() = default;

  // Every cell that it may ever write, in order.
  virtual std::vector<CellName> Cells(const Plan& plan) const { return plan.Cells(); }
  // The columns of weak observers are declared notify-only. The functions may be called as long as the workload lives.
  virtual std::vector<WorkloadObserver> Observers(const Plan& /*plan*/) { return {}; }
  // Writes the first data of a run. Nothing fails here.
  virtual void SetUp(Actor& /*actor*/) {}
  // Does a piece of work. Called by many tasks; any call of the cluster may fail.
  virtual void Step(Actor& actor) = 0;
  // Every transaction that changes the column notifies the cell, weakly.
  struct WeakSource {
    std::string table;
    std::string column;
    CellName notified;
  };
  virtual std::optional<WeakSource> Notifies(const Plan& /*plan*/) const { return std::nullopt; }
  // Called when for the first time nothing is left to be observed but the quarantine, which is replayed afterwards.
  virtual void CheckObserved(Actor& /*actor*/, const std::vector<Quarantined>& /*quarantined*/) {}
  // Called at the end, when all other processes are gone and nothing fails any more.
  virtual void Check(Actor& /*actor*/) {}
  // Whether its values are lists that are only appended to. Then the graph checker judges the run too.
  virtual bool lists() const { return false; }
};

struct WorkloadKind {
  std::string_view name;
  std::string_view what;
  bool observes;
  std::unique_ptr<Workload> (*make)();
};
std::span<const WorkloadKind> AllWorkloads();
// Returns null if the name is unknown.
std::unique_ptr<Workload> NewWorkload(std::string_view name);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_WORKLOADS_WORKLOAD_H_
