// SPDX-License-Identifier: Apache-2.0

#include "sim/plan.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/dice.h"
#include "sim/workloads/workload.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

// Cells in one row of Layout::kGroups.
constexpr size_t kGroup = 3;

// All numbers have the same length, so that text sorts in numeric order.
std::string Numbered(std::string_view prefix, size_t i) { return StrCat(prefix, i < 10 ? "0" : "", i); }

void RollWork(Dice* dice, Plan* plan) {
  plan->processes = dice->Between(1, 4);
  plan->tasks = dice->Between(plan->processes == 1 ? 2 : 1, plan->processes > 2 ? 2 : 4);
  plan->steps = dice->Between(30, 120) / (plan->processes * plan->tasks) + 1;
  plan->think_max = dice->OneOf({Duration(0), plan->faults.latency_max, plan->faults.lease / 2});
  plan->keys = dice->OneOf({dice->Between(2, 5), dice->Between(2, 12), dice->Between(10, 50)});
  plan->layout =
      dice->OneOf({Plan::Layout::kOneRow, Plan::Layout::kRows, Plan::Layout::kGroups, Plan::Layout::kTables});
  plan->cells = dice->Between(1, 6);
  plan->long_values = dice->Toss();
}

// The durations of the cluster, shortened to match the latency of the network: seconds of a real cluster are a few
// messages here.
void RollCluster(Dice* dice, Plan* plan) {
  const Duration lease = plan->faults.lease;
  ClusterOptions& options = plan->cluster;
  options.lock_lease = lease;
  options.call_timeout = dice->OneOf({lease * 2, lease * 20, Duration(std::chrono::seconds(30))});
  options.gc_retention = lease + dice->OneOf({Duration(1), lease, lease * 10});
  plan->faults.retention = options.gc_retention;
  options.gc_period = dice->OneOf({Duration(0), lease / 2, lease * 4});
  options.max_background_commits = dice->OneOf<size_t>({0, 1, 3, 10'000});
  plan->one_step = dice->OneOf({Plan::OneStep::kAll, Plan::OneStep::kSome});
  plan->batching_store = dice->OneOf({true, false, false, false});
  plan->deadline = dice->OneOf({lease * 3, Duration(std::chrono::seconds(60))});
  plan->predict = dice->Toss();
  plan->gc_percent = dice->OneOf<size_t>({0, 3, 10});
}

void RollWorkers(Dice* dice, Plan* plan) {
  const Duration lease = plan->faults.lease;
  plan->workers = dice->OneOf<size_t>({0, 1, 1, 2, 2, 3});
  WorkerOptions& options = plan->worker;
  options.threads = static_cast<int>(dice->Between(1, 4));
  options.scanners = static_cast<int>(dice->Between(1, 2));
  options.scan_period = dice->OneOf({lease / 4, lease, lease * 3});
  options.max_queued_cells = dice->OneOf<size_t>({1, 3, 1000});
  options.min_retry_delay = dice->OneOf({plan->faults.latency_max, lease / 4});
  options.max_retry_delay = options.min_retry_delay * 8;
  options.max_chain = dice->OneOf<uint32_t>({3, 6, 1000});
  options.hints = dice->Toss();
  options.claims = dice->Toss();
  options.teleport = dice->Toss();
  plan->split_observers = dice->OneOf({true, false, false});
  plan->failing_percent = dice->OneOf<size_t>({0, 0, 5, 40});
}

// A quarter of all seeds has observers.
std::string_view RollWorkload(Dice* plain_dice, Dice* observing_dice) {
  std::vector<std::string_view> plain;
  std::vector<std::string_view> observing;
  for (const WorkloadKind& kind : AllWorkloads()) (kind.observes ? observing : plain).push_back(kind.name);
  const std::string_view chosen = plain[plain_dice->Between(0, plain.size() - 1)];
  return observing_dice->OneOf({true, false, false, false})
             ? observing[observing_dice->Between(0, observing.size() - 1)]
             : chosen;
}

// Steps that few runs have, or that occur a few times in a run. (Without opening a session: every run begins with
// that.)
constexpr Step kRareSteps[] = {
    Step::kRefresh,    Step::kReadLocks,      Step::kRollBack, Step::kRollForward, Step::kMarkMissing,
    Step::kQuarantine, Step::kWeakMark,       Step::kCollect,  Step::kRemoveMark,  Step::kRaiseSafePoint,
    Step::kIsAlive,    Step::kOldestSnapshot, Step::kClaim,    Step::kAcknowledge, Step::kCommitSecondary,
};

// A client sends its commit, which arrives twice, and is paused for longer than the retention, while others overwrite
// its writes and garbage is collected (G7).
void ForgetClients(Dice* dice, Plan* plan) {
  Faults& faults = plan->faults;
  const bool in_one_step = dice->Toss();
  plan->one_step = in_one_step ? Plan::OneStep::kAll : plan->one_step;
  faults.one_step = in_one_step;
  faults.hears_copies = true;
  faults.long_pauses = true;
  faults.focus.reset();
  faults.focus_steps = Only(in_one_step ? Step::kOneStep : Step::kCommitPrimary);
  faults.focus_factor = 20;
  faults.rates.pause_after_send = 0.005;
  faults.rates.duplicate = 0.5;
  plan->cluster.gc_retention = faults.lease + Duration(1);
  faults.retention = plan->cluster.gc_retention;
  plan->cluster.gc_period = faults.lease / 2;
  faults.duplicate_max = dice->OneOf({faults.latency_max * 4, faults.retention * 2});
  plan->keys = std::min<size_t>(plan->keys, 5);
}

// Added to everything else. Faults are a little more likely at common steps, and much more likely at rare ones.
void WeighPairs(Dice* dice, bool observes, Plan* plan) {
  Faults& faults = plan->faults;
  faults.long_pauses = dice->Toss();
  const auto any = static_cast<Step>(dice->Between(0, kStepCount - 1));
  const Step rare = kRareSteps[dice->Between(0, std::size(kRareSteps) - 1)];
  const Step observed = dice->OneOf({Step::kQuarantine, Step::kQuarantine, Step::kAcknowledge, Step::kWeakMark,
                                     Step::kReadMark, Step::kRemoveMark, Step::kFindMarks, Step::kClaim});
  const size_t which = dice->Between(0, 3);
  const Step step = which < 2 ? any : which == 2 || !observes ? rare : observed;
  if (dice->OneOf({true, true, false})) {
    const bool is_rare = std::find(std::begin(kRareSteps), std::end(kRareSteps), step) != std::end(kRareSteps);
    faults.focus.reset();
    faults.focus_steps = Only(step);
    faults.focus_factor = is_rare ? dice->OneOf({20.0, 100.0}) : dice->OneOf({5.0, 20.0});
  }
  if (observes) plan->failing_percent = dice->OneOf<size_t>({0, 0, 5, 40, 90});
  if (dice->Between(0, 7) == 0) ForgetClients(dice, plan);
}

std::string_view LayoutName(Plan::Layout layout) {
  static constexpr std::array<std::string_view, 4> kNames = {"one_row", "rows", "groups", "tables"};
  return kNames[static_cast<size_t>(layout)];
}

bool HasObservers(std::string_view workload) {
  const std::span<const WorkloadKind> all = AllWorkloads();
  return std::any_of(all.begin(), all.end(),
                     [&](const WorkloadKind& kind) { return kind.name == workload && kind.observes; });
}

}  // namespace

Plan Plan::Of(uint64_t seed, std::string_view workload, Weights weights) {
  Dice dice(seed, "plan");
  Plan plan;
  plan.seed = seed;
  plan.faults = Faults::Swarm(seed);
  Dice observing(seed,
                 "observers");  // separate dice, so that runs without observers do not change
  plan.workload = RollWorkload(&dice, &observing);
  if (!workload.empty()) plan.workload = workload;
  RollWork(&dice, &plan);
  RollCluster(&dice, &plan);
  const bool observes = HasObservers(plan.workload);
  if (observes) RollWorkers(&observing, &plan);
  Dice pairs(seed, "pairs");
  if (weights == Weights::kPairs) WeighPairs(&pairs, observes, &plan);
  return plan;
}

const std::vector<std::string>& Plan::Tables() {
  static const std::vector<std::string>* const tables = new std::vector<std::string>({"ta", "tb", "tc"});
  return *tables;
}

CellName Plan::CellAt(size_t i) const {
  const std::string& first = Tables().front();
  switch (layout) {
    case Layout::kOneRow:
      return {first, "row", Numbered("c", i)};
    case Layout::kRows:
      return {first, Numbered("r", i), "c"};
    case Layout::kGroups:
      return {first, Numbered("r", i / kGroup), Numbered("c", i % kGroup)};
    case Layout::kTables:
      return {Tables()[i % Tables().size()], Numbered("r", i), "c"};
  }
  return {};
}

std::vector<CellName> Plan::Cells() const {
  std::vector<CellName> all;
  for (size_t i = 0; i < keys; ++i) all.push_back(CellAt(i));
  std::sort(all.begin(), all.end());
  return all;
}

std::string ToText(const Plan& plan) {
  const ClusterOptions& options = plan.cluster;
  std::string out = StrCat("workload=", plan.workload, " processes=", plan.processes, " tasks=", plan.tasks,
                           " steps=", plan.steps, " think_max=", plan.think_max.count(), "us keys=", plan.keys,
                           " layout=", LayoutName(plan.layout), " cells=", plan.cells);
  out += StrCat(" lock_lease=", options.lock_lease.count(), "us call_timeout=", options.call_timeout.count(),
                "us gc_retention=", options.gc_retention.count(), "us gc_period=", options.gc_period.count(),
                "us max_background_commits=", options.max_background_commits, " deadline=", plan.deadline.count(),
                "us gc_percent=", plan.gc_percent);
  if (plan.faults.one_step) out += plan.one_step == Plan::OneStep::kAll ? " one_step" : " one_step_by_some";
  if (plan.batching_store) out += " batching_store";
  if (plan.long_values) out += " long_values";
  if (plan.predict) out += " predict";
  if (!HasObservers(plan.workload)) return out;
  const WorkerOptions& worker = plan.worker;
  out += StrCat(" workers=", plan.workers, " threads=", worker.threads, " scanners=", worker.scanners,
                " scan_period=", worker.scan_period.count(), "us queue=", worker.max_queued_cells,
                " min_retry_delay=", worker.min_retry_delay.count(), "us max_chain=", worker.max_chain,
                " failing_percent=", plan.failing_percent);
  if (plan.split_observers) out += " split_observers";
  if (worker.hints) out += " hints";
  if (worker.claims) out += " claims";
  if (worker.teleport) out += " teleport";
  return out;
}

}  // namespace percolator::sim
