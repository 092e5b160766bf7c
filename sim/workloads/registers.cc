// SPDX-License-Identifier: Apache-2.0

// Registers: single reads, reads of many cells, scans, blind writes, deletes, verifies, and writes that depend on
// reads, in any mixture; and a counter. It does everything that the history checkers can judge.

#include <algorithm>
#include <charconv>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

class Registers final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells = plan.Cells();
    cells.push_back(Counter());
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(10);
    if (what < 2) {
      // If the outcome is unknown, it may have counted.
      const bool counted = actor.Transact([](Recorded& t) { return Count(t); });
      counted_at_least_ += counted ? 1 : 0;
    } else if (what < 7) {
      actor.Transact([](Recorded& t) { return Anything(t, true); });
    } else if (what < 9) {
      actor.Look([](Recorded& t) { return Anything(t, false); });
    } else {
      actor.LookBack([](Recorded& t) { return Anything(t, false); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([this](Recorded& t) {
      PERCOLATOR_ASSIGN_OR_RETURN(const int64_t count, CountOf(t));
      if (count < counted_at_least_) {
        t.actor().scene().Fail("counter",
                               StrCat("the counter is ", count, " after ", counted_at_least_, " increments"));
      }
      return absl::OkStatus();
    });
  }

 private:
  static CellName Counter() { return {Plan::Tables()[2], "counter", "count"}; }

  static absl::StatusOr<int64_t> CountOf(Recorded& t) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, t.Get(Counter()));
    int64_t count = 0;
    if (value.has_value()) std::from_chars(value->data(), value->data() + value->size(), count);
    return count;
  }

  static absl::Status Count(Recorded& t) {
    PERCOLATOR_ASSIGN_OR_RETURN(const int64_t count, CountOf(t));
    t.Set(Counter(), t.actor().Value(std::to_string(count + 1)));
    return absl::OkStatus();
  }

  static absl::Status Anything(Recorded& t, bool may_write) {
    Actor& actor = t.actor();
    const bool blind = may_write && actor.Percent(20);
    for (const CellName& cell : actor.SomeCells()) {
      if (cell == Counter()) continue;
      if (blind) {
        WriteOne(t, cell);
      } else if (absl::Status s = AnyOne(t, cell, may_write); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  static absl::Status AnyOne(Recorded& t, const CellName& cell, bool may_write) {
    Actor& actor = t.actor();
    const uint64_t what = actor.Draw(may_write ? 12 : 5);
    if (what < 2) return t.Get(cell).status();
    if (what < 4) return t.Get(actor.SomeCells()).status();
    if (what < 5) return t.Scan(cell.table, {.rows = RowRange::Prefix(cell.row.substr(0, 1))}).status();
    if (what < 6) {
      t.Verify(cell);
      return absl::OkStatus();
    }
    if (what >= 9) {
      PERCOLATOR_RETURN_IF_ERROR(t.Get(cell).status());
    }
    WriteOne(t, cell);
    return absl::OkStatus();
  }

  static void WriteOne(Recorded& t, const CellName& cell) {
    if (t.actor().Percent(20)) {
      t.Delete(cell);
    } else {
      t.Set(cell, t.actor().Value(std::to_string(t.actor().NewNumber())));
    }
  }

  int64_t counted_at_least_ = 0;
};

}  // namespace

std::unique_ptr<Workload> NewRegisters() { return std::make_unique<Registers>(); }

}  // namespace percolator::sim
