// SPDX-License-Identifier: Apache-2.0

// Observers that make work for observers: sources are added up in groups, the sums are doubled, the doubles added up.
//
//     ta source:v  --add-->  ta source:v_added, tb group:sum  --double-->  tb group:twice  --total-->  tc all:total
//                  --copy->  ta source:v_copy
//
// Sources come, change and go. When all is observed, every cell must follow from the sources alone.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kMaxSources = 12;
constexpr size_t kMaxGroups = 3;

std::string Numbered(std::string_view name, size_t i) { return StrCat(name, i < 10 ? "0" : "", i); }

CellName SumOf(size_t group) { return {Plan::Tables()[1], Numbered("group", group), "sum"}; }
CellName TwiceOf(size_t group) { return {Plan::Tables()[1], Numbered("group", group), "twice"}; }
CellName Total() { return {Plan::Tables()[2], "all", "total"}; }
CellName Beside(const CellName& source, std::string_view what) {
  return {source.table, source.row, StrCat(source.column, "_", what)};
}

// Zero is written as nothing at all, so that deletions happen everywhere.
void SetNumber(Recorded& t, const CellName& cell, int64_t number) {
  if (number == 0) {
    t.Delete(cell);
  } else {
    t.Set(cell, t.actor().Value(std::to_string(number)));
  }
}

class Chain final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells = {Total()};
    for (const CellName& source : Sources(plan)) {
      cells.insert(cells.end(), {source, Beside(source, "added"), Beside(source, "copy")});
    }
    for (size_t group = 0; group < Groups(plan); ++group) cells.insert(cells.end(), {SumOf(group), TwiceOf(group)});
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  std::vector<WorkloadObserver> Observers(const Plan& plan) override {
    const size_t groups = Groups(plan);
    const std::vector<CellName> sources = Sources(plan);
    std::vector<WorkloadObserver> observers;
    const auto add = [&](std::string name, const CellName& cell, auto run) {
      observers.push_back({{.name = std::move(name), .table = cell.table, .column = cell.column}, 4, std::move(run)});
    };
    for (const std::string_view column : Columns(plan)) {
      const CellName cell{Plan::Tables()[0], "", std::string(column)};
      add(StrCat("add_", column), cell, [sources](Recorded& t, const Notification& n) { return Add(t, n, sources); });
      add(StrCat("copy_", column), cell, Copy);
    }
    add("double", SumOf(0), Double);
    add("total", TwiceOf(0), [groups](Recorded& t, const Notification&) { return AddUp(t, groups); });
    return observers;
  }

  void Step(Actor& actor) override {
    const std::vector<CellName> sources = Sources(actor.scene().plan);
    const uint64_t what = actor.Draw(10);
    if (what < 9) {
      actor.Transact([&](Recorded& t) { return Edit(t, sources); });
    } else {
      actor.Look([&](Recorded& t) { return t.Get(t.actor().SomeCells()).status(); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Audit(t); });
  }

 private:
  static size_t Groups(const Plan& plan) { return std::min(kMaxGroups, 1 + plan.cells / 2); }

  // Whether two sources share a row.
  static bool InPairs(const Plan& plan) {
    return plan.layout == Plan::Layout::kGroups || plan.layout == Plan::Layout::kOneRow;
  }
  static std::vector<std::string_view> Columns(const Plan& plan) {
    return InPairs(plan) ? std::vector<std::string_view>{"v", "w"} : std::vector<std::string_view>{"v"};
  }
  static std::vector<CellName> Sources(const Plan& plan) {
    std::vector<CellName> sources;
    const size_t per_row = Columns(plan).size();
    for (size_t i = 0; i < std::min(plan.keys, kMaxSources); ++i) {
      sources.push_back({Plan::Tables()[0], Numbered("source", i / per_row), std::string(Columns(plan)[i % per_row])});
    }
    return sources;
  }
  static size_t GroupOf(const std::vector<CellName>& sources, const CellName& source, size_t groups) {
    return static_cast<size_t>(std::find(sources.begin(), sources.end(), source) - sources.begin()) % groups;
  }

  static absl::Status Edit(Recorded& t, const std::vector<CellName>& sources) {
    Actor& actor = t.actor();
    const size_t count = 1 + actor.Draw(actor.scene().plan.cells);
    for (size_t i = 0; i < count; ++i) {
      const CellName& source = sources[actor.Draw(sources.size())];
      const int64_t number = actor.Percent(30) ? 0 : static_cast<int64_t>(1 + actor.Draw(1000));
      SetNumber(t, source, number);
    }
    return absl::OkStatus();
  }

  static absl::Status Add(Recorded& t, const Notification& notification, const std::vector<CellName>& sources) {
    const CellName& source = notification.cell;
    const CellName sum = SumOf(GroupOf(sources, source, Groups(t.actor().scene().plan)));
    PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.Get({source, Beside(source, "added"), sum}));
    const int64_t number = NumberIn(values[0]);
    const int64_t difference = number - NumberIn(values[1]);
    SetNumber(t, Beside(source, "added"), number);
    if (difference == 0 && t.actor().Percent(50)) return absl::OkStatus();
    SetNumber(t, sum, NumberIn(values[2]) + difference);
    return absl::OkStatus();
  }

  static absl::Status Copy(Recorded& t, const Notification& notification) {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(notification.cell));
    SetNumber(t, Beside(notification.cell, "copy"), NumberIn(value));
    return absl::OkStatus();
  }

  static absl::Status Double(Recorded& t, const Notification& notification) {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto sum, t.Get(notification.cell));
    SetNumber(t, {notification.cell.table, notification.cell.row, "twice"}, 2 * NumberIn(sum));
    return absl::OkStatus();
  }

  // If two observers run for different groups, one fails or starts after the other's commit, so the last one has seen
  // all.
  static absl::Status AddUp(Recorded& t, size_t groups) {
    int64_t total = 0;
    for (size_t group = 0; group < groups; ++group) {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto twice, t.Get(TwiceOf(group)));
      total += NumberIn(twice);
    }
    SetNumber(t, Total(), total);
    return absl::OkStatus();
  }

  static absl::Status Expect(Recorded& t, const CellName& cell, int64_t expected) {
    PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(cell));
    if (NumberIn(value) != expected) {
      t.actor().scene().Fail("chain", StrCat(KeyOf(cell), " is ", NumberIn(value), " in the end, expected ", expected));
    }
    return absl::OkStatus();
  }

  static absl::Status Audit(Recorded& t) {
    const Plan& plan = t.actor().scene().plan;
    const std::vector<CellName> sources = Sources(plan);
    std::vector<int64_t> sums(Groups(plan));
    int64_t total = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      PERCOLATOR_ASSIGN_OR_RETURN(const auto value, t.Get(sources[i]));
      const int64_t number = NumberIn(value);
      sums[i % sums.size()] += number;
      total += 2 * number;
      PERCOLATOR_RETURN_IF_ERROR(Expect(t, Beside(sources[i], "added"), number));
      PERCOLATOR_RETURN_IF_ERROR(Expect(t, Beside(sources[i], "copy"), number));
    }
    for (size_t group = 0; group < sums.size(); ++group) {
      PERCOLATOR_RETURN_IF_ERROR(Expect(t, SumOf(group), sums[group]));
      PERCOLATOR_RETURN_IF_ERROR(Expect(t, TwiceOf(group), 2 * sums[group]));
    }
    return Expect(t, Total(), total);
  }
};

}  // namespace

std::unique_ptr<Workload> NewChain() { return std::make_unique<Chain>(); }

}  // namespace percolator::sim
