// SPDX-License-Identifier: Apache-2.0

// A small combine queue: many transactions put numbers into cells of a queue and notify one cell weakly, where strong
// notifications would conflict all the time. The observer empties the queue into a total.
//
// N9: a run after a notification takes everything that was put in before it. In the end the queue is empty, and the
// total is the sum of all numbers.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kMaxWeakCells = 6;

class Weak final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells = {Total()};
    for (size_t i = 0; i < Size(plan); ++i) cells.insert(cells.end(), {Queued(i), Given(plan, i)});
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  std::vector<WorkloadObserver> Observers(const Plan& /*plan*/) override {
    return {{{.name = "fold", .table = Hot().table, .column = Hot().column, .kind = NotificationKind::kWeak},
             4,
             [](Recorded& t, const Notification&) { return Fold(t); }}};
  }

  std::optional<WeakSource> Notifies(const Plan& plan) const override {
    return WeakSource{Given(plan, 0).table, Given(plan, 0).column, Hot()};
  }

  void Step(Actor& actor) override {
    if (actor.Percent(90)) {
      actor.Transact([](Recorded& t) { return Give(t); });
    } else {
      // A notification leaves no record, so it is not part of the history.
      const auto notify = [](ReadWrite& t) { t.Notify(Hot()); };
      actor.cluster().Transact(notify, {.timeout = actor.scene().plan.deadline}).IgnoreError();
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Audit(t); });
  }

 private:
  static size_t Size(const Plan& plan) { return std::min(plan.keys, kMaxWeakCells); }
  static CellName Hot() { return {Plan::Tables()[1], "hot", "changed"}; }
  static CellName Total() { return {Plan::Tables()[1], "hot", "total"}; }
  static CellName Queued(size_t i) { return {Plan::Tables()[0], StrCat("queue", i), "number"}; }
  static CellName Given(const Plan& plan, size_t i) {
    return {Plan::Tables()[plan.layout == Plan::Layout::kTables ? 2 : 0], StrCat("queue", i), "given"};
  }

  static absl::Status Give(Recorded& t) {
    Actor& actor = t.actor();
    const size_t place = actor.Draw(Size(actor.scene().plan));
    const CellName given = Given(actor.scene().plan, place);
    PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.Get({Queued(place), given}));
    const auto amount = static_cast<int64_t>(1 + actor.Draw(100));
    t.Set(Queued(place), actor.Value(std::to_string(NumberIn(values[0]) + amount)));
    t.Set(given, std::to_string(NumberIn(values[1]) + amount));
    t.Notify(Hot());
    return absl::OkStatus();
  }

  static absl::Status Fold(Recorded& t) {
    int64_t sum = 0;
    for (size_t i = 0; i < Size(t.actor().scene().plan); ++i) {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(Queued(i)));
      if (!value.has_value()) continue;
      sum += NumberIn(value);
      t.Delete(Queued(i));
    }
    if (sum == 0) return absl::OkStatus();
    PERCOLATOR_ASSIGN_OR_RETURN(const auto total, t.Get(Total()));
    t.Set(Total(), std::to_string(NumberIn(total) + sum));
    return absl::OkStatus();
  }

  static absl::Status Audit(Recorded& t) {
    int64_t given = 0;
    for (size_t i = 0; i < Size(t.actor().scene().plan); ++i) {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.Get({Queued(i), Given(t.actor().scene().plan, i)}));
      given += NumberIn(values[1]);
      if (values[0].has_value()) {
        t.actor().scene().Fail("weak", StrCat(KeyOf(Queued(i)), " is still in the queue"));
      }
    }
    PERCOLATOR_ASSIGN_OR_RETURN(const auto total, t.Get(Total()));
    if (NumberIn(total) != given) {
      t.actor().scene().Fail("weak", StrCat("the total is ", NumberIn(total), ", expected ", given, ""));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewWeak() { return std::make_unique<Weak>(); }

}  // namespace percolator::sim
