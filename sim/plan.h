// SPDX-License-Identifier: Apache-2.0

// Plan: everything that a seed decides about a run before it begins.
//
// The workload, the number of processes and tasks, the number and layout of cells, the shape of transactions, the
// options of the cluster, and the faults. As with faults, every property is drawn on its own (a swarm): some runs have
// two cells in one row and a lease as short as a few messages, others fifty cells in three tables and hardly a fault.

#ifndef PERCOLATOR_SIM_PLAN_H_
#define PERCOLATOR_SIM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "sim/faults.h"

namespace percolator::sim {

struct Plan {
  // The layout of the cells of a workload.
  enum class Layout : uint8_t {
    kOneRow,  // columns of one row
    kRows,    // a row each
    kGroups,  // three to a row
    kTables,  // a row each, in three tables
  };
  // The processes that commit in one step, if the store of the world can.
  enum class OneStep : uint8_t { kAll, kSome };

  // How faults are weighted.
  enum class Weights : uint8_t {
    kCalls = 1,  // by kinds of calls; pauses beyond the retention are rare
    kPairs = 2,  // so that every fault meets every step of the protocol in 20,000 seeds (sim/coverage.h)
  };

  // The plan of a seed, with the given workload if one is named.
  static Plan Of(uint64_t seed, std::string_view workload = {}, Weights weights = Weights::kPairs);

  // The i-th cell. Workloads whose cells are not all alike have their own names.
  CellName CellAt(size_t i) const;
  std::vector<CellName> Cells() const;
  static const std::vector<std::string>& Tables();

  uint64_t seed = 0;
  std::string workload;
  Faults faults;

  size_t processes = 2;
  size_t tasks = 1;       // of each process, at the same time
  size_t steps = 10;      // of each task
  Duration think_max{0};  // between two steps
  size_t keys = 10;
  Layout layout = Layout::kRows;
  size_t cells = 3;  // the max number of cells of a transaction
  bool long_values = false;

  ClusterOptions cluster;
  OneStep one_step = OneStep::kAll;
  bool batching_store = false;  // src/store/batching_store.h stands before the store
  Duration deadline{0};         // of a transaction
  bool predict = false;         // transactions have a kind
  size_t gc_percent = 0;        // of steps, which collect garbage

  // If the workload has observers:
  size_t workers = 0;  // processes that run observers; work that they leave is finished when faults have ended
  WorkerOptions worker;
  bool split_observers = false;  // each worker has only some observers, until faults have ended
  size_t failing_percent = 0;    // of observer runs, which return an error
};

// In one line, without the faults.
std::string ToText(const Plan& plan);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_PLAN_H_
