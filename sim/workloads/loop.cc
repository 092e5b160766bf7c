// SPDX-License-Identifier: Apache-2.0

// An observer that changes what it observes: each run counts a number down, until it is zero.
//
// Its own change notifies it again. Some numbers are larger than the max chain of notifications
// (WorkerOptions::max_chain): these count as cycles and go to quarantine, and each replay continues for a while.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kMaxLoopCells = 6;
constexpr uint64_t kMaxSteps = 12;

class Loop final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells;
    for (size_t i = 0; i < std::min(plan.keys, kMaxLoopCells); ++i) cells.push_back(Number(plan, i));
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  std::vector<WorkloadObserver> Observers(const Plan& plan) override {
    return {{{.name = "down", .table = Number(plan, 0).table, .column = "number"}, 4, CountDown}};
  }

  void Step(Actor& actor) override {
    actor.Transact([&](Recorded& t) {
      t.Set(actor.AnyCell(), actor.Value(std::to_string(actor.Draw(kMaxSteps))));
      return absl::OkStatus();
    });
  }

  // A number that is not zero was quarantined as a cycle, or because the observer failed. None is just forgotten.
  void CheckObserved(Actor& actor, const std::vector<Quarantined>& quarantined) override {
    actor.Look([&](Recorded& t) -> absl::Status {
      for (const CellName& cell : t.actor().scene().cells) {
        PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(cell));
        const bool given_up = std::any_of(quarantined.begin(), quarantined.end(),
                                          [&](const Quarantined& entry) { return entry.cell == cell; });
        if (NumberIn(value) == 0 || given_up) continue;
        t.actor().scene().Fail("loop", StrCat(KeyOf(cell), " has stopped at ", NumberIn(value)));
      }
      return absl::OkStatus();
    });
  }

  void Check(Actor& actor) override { CheckObserved(actor, {}); }

 private:
  static CellName Number(const Plan& plan, size_t i) {
    return {Plan::Tables()[0], StrCat(plan.long_values ? "a_row_with_a_long_name_" : "r", i), "number"};
  }

  static absl::Status CountDown(Recorded& t, const Notification& notification) {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(notification.cell));
    const int64_t number = NumberIn(value);
    if (number == 0) return absl::OkStatus();
    t.Set(notification.cell, t.actor().Value(std::to_string(number - 1)));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewLoop() { return std::make_unique<Loop>(); }

}  // namespace percolator::sim
