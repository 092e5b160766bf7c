// SPDX-License-Identifier: Apache-2.0

// Long readers: snapshots of now and of the past are held and read repeatedly, while other transactions overwrite the
// data and garbage is collected. A snapshot reads the same each time, or fails because it is too old; it never finds
// less.

#include <string>

#include "sim/workloads/kinds.h"

namespace percolator::sim {
namespace {

class LongReader final : public Workload {
 public:
  void SetUp(Actor& actor) override {
    actor.ByHand([](Recorded& t) { return Overwrite(t, t.actor().scene().cells); });
  }

  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(20);
    if (what < 11) {
      actor.Transact([](Recorded& t) { return Overwrite(t, t.actor().SomeCells()); });
    } else if (what < 14) {
      actor.CollectGarbage();
    } else if (what < 17) {
      actor.Look([](Recorded& t) { return ReadForLong(t); });
    } else {
      actor.LookBack([](Recorded& t) { return ReadForLong(t); });
    }
  }

 private:
  static absl::Status Overwrite(Recorded& t, const std::vector<CellName>& cells) {
    for (const CellName& cell : cells) {
      const bool erase = t.actor().Percent(15);
      if (erase) {
        t.Delete(cell);
      } else {
        t.Set(cell, t.actor().Value(std::to_string(t.actor().NewNumber())));
      }
    }
    return absl::OkStatus();
  }

  // The history checkers compare the reads.
  static absl::Status ReadForLong(Recorded& t) {
    Actor& actor = t.actor();
    const Duration retention = actor.scene().plan.cluster.gc_retention;
    const uint64_t times = 2 + actor.Draw(4);
    for (uint64_t i = 0; i < times && actor.alive() && !actor.scene().winding_down; ++i) {
      absl::Status status;
      if (actor.Percent(30)) {
        status = t.Scan(actor.AnyCell().table).status();
      } else {
        status = t.Get(actor.scene().cells).status();
      }
      if (!status.ok()) return status;
      actor.Sleep(retention);
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewLongReader() { return std::make_unique<LongReader>(); }

}  // namespace percolator::sim
