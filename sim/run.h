// One run of the simulator: a plan is carried out, watched and judged.
//
//   set up   no faults: the workload writes its first data
//   run      under faults: processes use the cluster, others run its observers; one that dies is replaced after a while by a
//            new one
//   heal     no more faults, and no new work
//   drain    who is at work must come to an end within a bounded time, and all messages must arrive (T14)
//   observe  if the workload has observers: workers run until nothing is left to be observed, within a bounded time; what is
//            in quarantine is replayed
//   check    a new process asks for the truth about commits of unknown outcome (T10), reads everything, collects garbage
//            and reads again; in the end no lock may be left
//
// All along the invariants are watched (sim/invariants.h). At last the history is judged by sim/history: by its timestamps,
// and if its values are lists also without them.

#ifndef PERCOLATOR_SIM_RUN_H_
#define PERCOLATOR_SIM_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "percolator/cluster.h"
#include "sim/chance.h"
#include "sim/coverage.h"
#include "sim/invariants.h"
#include "sim/plan.h"

namespace percolator::sim {

struct RunOptions {
  size_t trace_lines = 0;           // keep so many of the last
  std::vector<FaultId> suppressed;  // do not happen
  bool only_history = false;        // judge by what clients saw alone, without watching the servers
};

// How much a run did.
struct RunCounts {
  uint64_t events = 0;
  uint64_t transactions = 0;  // of all kinds, snapshots too
  uint64_t committed = 0;     // with writes
  uint64_t failed = 0;
  uint64_t unknown = 0;    // outcomes that the client did not learn at first
  uint64_t processes = 0;  // also those that took the place of dead ones
  uint64_t faults = 0;
  uint64_t runs = 0;         // of observers
  uint64_t write_skews = 0;  // GraphReport::write_skew_pivots
  ClusterMetrics cluster;
  CoveredPairs covered;  // of one run; not added up

  void Add(const RunCounts& other);
};

struct RunResult {
  std::optional<Invariants::Violation> failure;
  uint64_t hash = 0;  // of the trace
  RunCounts counts;
  std::string trace;
  std::vector<FaultId> happened;
};

RunResult RunPlan(const Plan& plan, const RunOptions& options = {});

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_RUN_H_
