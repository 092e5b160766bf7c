// SPDX-License-Identifier: Apache-2.0

// Lists that are only appended to. A list shows its whole past, so the graph checker can judge the run without trusting
// any timestamp.

#include "sim/workloads/kinds.h"

namespace percolator::sim {
namespace {

class Append final : public Workload {
 public:
  bool lists() const override { return true; }

  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(10);
    if (what < 7) {
      actor.Transact([](Recorded& t) { return Mixed(t); });
    } else if (what < 9) {
      actor.Look([](Recorded& t) { return t.Get(t.actor().SomeCells()).status(); });
    } else {
      actor.LookBack([](Recorded& t) { return t.Get(t.actor().SomeCells()).status(); });
    }
  }

 private:
  // Reads and appends, one or several to a cell.
  static absl::Status Mixed(Recorded& t) {
    Actor& actor = t.actor();
    for (const CellName& cell : actor.SomeCells()) {
      const uint64_t what = actor.Draw(10);
      absl::Status status;
      if (what < 5) {
        status = t.Append(cell, actor.NewNumber());
      } else if (what < 6) {
        status = t.Append(cell, actor.NewNumber());
        if (status.ok()) status = t.Append(cell, actor.NewNumber());
      } else if (what < 7) {
        t.Verify(cell);
      } else {
        status = t.Get(cell).status();
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewAppend() { return std::make_unique<Append>(); }

}  // namespace percolator::sim
