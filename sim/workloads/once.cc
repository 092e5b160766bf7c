// SPDX-License-Identifier: Apache-2.0

// Two observers of one column, each of which counts its own commits for a cell in the transaction that it observes
// with.
//
// N2, N7: there are no more commits than changes, and the last one has seen the last change. Only transactions are
// counted, independently of the protocol's records, so this checks the acknowledgements against an independent count.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kMaxOnceCells = 8;
constexpr std::string_view kObservers[] = {"first", "second"};

class Once final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells;
    for (size_t i = 0; i < std::min(plan.keys, kMaxOnceCells); ++i) {
      cells.push_back(Changed(i));
      for (const std::string_view observer : kObservers) {
        cells.insert(cells.end(), {Count(plan, Changed(i), observer), Seen(plan, Changed(i), observer)});
      }
    }
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  std::vector<WorkloadObserver> Observers(const Plan& /*plan*/) override {
    std::vector<WorkloadObserver> observers;
    for (const std::string_view observer : kObservers) {
      observers.push_back({{.name = std::string(observer), .table = Changed(0).table, .column = Changed(0).column},
                           3,
                           [observer](Recorded& t, const Notification& n) { return See(t, n.cell, observer); }});
    }
    return observers;
  }

  void Step(Actor& actor) override {
    actor.Transact([&](Recorded& t) -> absl::Status {
      const CellName cell = Changed(actor.Draw(std::min(actor.scene().plan.keys, kMaxOnceCells)));
      if (actor.Percent(30)) {
        t.Delete(cell);
      } else {
        t.Set(cell, actor.Value(std::to_string(actor.NewNumber())));
      }
      return absl::OkStatus();
    });
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) {
      for (size_t i = 0; i < std::min(t.actor().scene().plan.keys, kMaxOnceCells); ++i) {
        for (const std::string_view observer : kObservers) {
          PERCOLATOR_RETURN_IF_ERROR(Audit(t, Changed(i), observer));
        }
      }
      return absl::OkStatus();
    });
  }

 private:
  static CellName Changed(size_t i) { return {Plan::Tables()[0], StrCat("row", i), "x"}; }
  // In the row of the cell, or in another table, so that the transaction has secondaries.
  static CellName Count(const Plan& plan, const CellName& cell, std::string_view observer) {
    return {Plan::Tables()[plan.layout == Plan::Layout::kOneRow ? 0 : 1], cell.row, StrCat(observer, "_count")};
  }
  static CellName Seen(const Plan& plan, const CellName& cell, std::string_view observer) {
    return {Plan::Tables()[plan.layout == Plan::Layout::kTables ? 2 : 0], cell.row, StrCat(observer, "_seen")};
  }

  static absl::Status See(Recorded& t, const CellName& cell, std::string_view observer) {
    const Plan& plan = t.actor().scene().plan;
    PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.Get({cell, Count(plan, cell, observer)}));
    const int64_t count = NumberIn(values[1]);
    t.Set(Count(plan, cell, observer), std::to_string(count + 1));
    t.Set(Seen(plan, cell, observer), values[0].value_or("nothing"));
    return absl::OkStatus();
  }

  static absl::Status Audit(Recorded& t, const CellName& cell, std::string_view observer) {
    Scene& scene = t.actor().scene();
    PERCOLATOR_ASSIGN_OR_RETURN(const auto values,
                                t.Get({cell, Count(scene.plan, cell, observer), Seen(scene.plan, cell, observer)}));
    const size_t changes = scene.invariants.ChangesOf(cell);
    const int64_t count = NumberIn(values[1]);
    const auto event = [&] { return StrCat(observer, ", of ", KeyOf(cell), " with ", changes, " changes"); };
    if (count > static_cast<int64_t>(changes)) scene.Fail("once", StrCat(event(), ", has committed ", count, " times"));
    if (changes == 0) return absl::OkStatus();
    if (values[2] != values[0].value_or("nothing")) scene.Fail("once", StrCat(event(), ", has missed the last change"));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewOnce() { return std::make_unique<Once>(); }

}  // namespace percolator::sim
