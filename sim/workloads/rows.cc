// SPDX-License-Identifier: Apache-2.0

// Rows that come and go, and scans over parts of them: ranges, some columns, and the transaction's own writes.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"

namespace percolator::sim {
namespace {

class Rows final : public Workload {
 public:
  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(10);
    if (what < 6) {
      actor.Transact([](Recorded& t) { return ChangeAndScan(t); });
    } else if (what < 9) {
      actor.Look([](Recorded& t) { return ScanPart(t); });
    } else {
      actor.LookBack([](Recorded& t) { return ScanPart(t); });
    }
  }

 private:
  static absl::Status ChangeAndScan(Recorded& t) {
    Actor& actor = t.actor();
    if (actor.Percent(30)) {
      PERCOLATOR_RETURN_IF_ERROR(ScanPart(t));
    }
    for (const CellName& cell : actor.SomeCells()) {
      const uint64_t what = actor.Draw(10);
      if (what < 4) {
        t.Delete(cell);
      } else if (what < 9) {
        t.Set(cell, actor.Value(std::to_string(actor.NewNumber())));
      } else {
        t.Verify(cell);
      }
    }
    return actor.Percent(40) ? ScanPart(t) : absl::OkStatus();
  }

  static absl::Status ScanPart(Recorded& t) {
    Actor& actor = t.actor();
    const std::string& table = actor.AnyCell().table;
    ScanOptions options;
    if (actor.Percent(50)) options.rows.start = actor.AnyCell().row;
    if (actor.Percent(50)) options.rows.limit = actor.AnyCell().row;
    if (actor.Percent(30)) options.columns = {actor.AnyCell().column, actor.AnyCell().column};
    options.reverse = actor.NewNumber() % 2 == 1;
    return t.Scan(table, options).status();
  }
};

}  // namespace

std::unique_ptr<Workload> NewRows() { return std::make_unique<Rows>(); }

}  // namespace percolator::sim
