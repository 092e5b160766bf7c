// SPDX-License-Identifier: Apache-2.0

// Doctors on call: the classic write skew. Each cell is a doctor, on call or off; in each group at least one has to be
// on call at any time. A doctor that goes off checks that another one is on, and calls Verify for it. Without Verify,
// two could go off at once, each relying on the other: snapshot isolation allows it.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kGroup = 3;

class Doctors final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    Plan enough = plan;
    enough.keys = std::clamp<size_t>(plan.keys, 2, 12);
    return enough.Cells();
  }

  void SetUp(Actor& actor) override {
    actor.ByHand([](Recorded& t) {
      for (const CellName& doctor : t.actor().scene().cells) t.Set(doctor, OnCall(t));
      return absl::OkStatus();
    });
  }

  void Step(Actor& actor) override {
    const size_t doctor = actor.Draw(actor.scene().cells.size());
    const uint64_t what = actor.Draw(10);
    if (what < 6) {
      actor.Transact([&](Recorded& t) { return GoOff(t, doctor); });
    } else if (what < 9) {
      actor.Transact([&](Recorded& t) {
        t.Set(t.actor().scene().cells[doctor], OnCall(t));
        return absl::OkStatus();
      });
    } else {
      actor.Look([](Recorded& t) { return Audit(t); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Audit(t); });
  }

 private:
  // No two values are alike, so that a read identifies its writer.
  static std::string OnCall(Recorded& t) { return t.actor().Value(StrCat("on ", t.actor().NewNumber())); }
  static bool IsOnCall(const std::optional<std::string>& value) {
    return value.has_value() && value->starts_with("on ");
  }

  // The group of a doctor, [first, last). A remainder at the end belongs to the last group.
  static std::pair<size_t, size_t> GroupOf(size_t doctor, size_t all) {
    const size_t groups = std::max<size_t>(all / kGroup, 1);
    const size_t group = std::min(doctor / kGroup, groups - 1);
    return {group * kGroup, group + 1 == groups ? all : (group + 1) * kGroup};
  }

  static absl::Status GoOff(Recorded& t, size_t doctor) {
    const std::vector<CellName>& cells = t.actor().scene().cells;
    const auto [first, last] = GroupOf(doctor, cells.size());
    for (size_t other = first; other < last; ++other) {
      if (other == doctor) continue;
      PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, t.Get(cells[other]));
      if (!IsOnCall(value)) continue;
      t.Verify(cells[other]);
      if (t.actor().Percent(30)) {
        t.Delete(cells[doctor]);
      } else {
        t.Set(cells[doctor], StrCat("off ", t.actor().NewNumber()));
      }
      return absl::OkStatus();
    }
    return absl::OkStatus();  // the only doctor
  }

  static absl::Status Audit(Recorded& t) {
    const std::vector<CellName>& cells = t.actor().scene().cells;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> values, t.Get(cells));
    for (size_t first = 0; first < cells.size();) {
      const size_t last = GroupOf(first, cells.size()).second;
      if (std::none_of(values.begin() + static_cast<ptrdiff_t>(first), values.begin() + static_cast<ptrdiff_t>(last),
                       IsOnCall)) {
        t.actor().scene().Fail("doctors", StrCat("T", t.id(), " sees no doctor on call in the group of ", first));
      }
      first = last;
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewDoctors() { return std::make_unique<Doctors>(); }

}  // namespace percolator::sim
