// SPDX-License-Identifier: Apache-2.0

// A ring: each cell names the next one. Transactions change the order of three neighbours. At any time a walk from any
// cell visits all others and comes back.

#include <charconv>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

class Cycle final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    Plan enough = plan;
    enough.keys = std::max<size_t>(plan.keys, 4);  // a, b, c and d below differ
    return enough.Cells();
  }

  void SetUp(Actor& actor) override {
    actor.ByHand([](Recorded& t) {
      const size_t size = t.actor().scene().cells.size();
      for (size_t i = 0; i < size; ++i) {
        Point(t, i, (i + 1) % size);
      }
      return absl::OkStatus();
    });
  }

  void Step(Actor& actor) override {
    const uint64_t what = actor.Draw(10);
    if (what < 8) {
      actor.Transact([](Recorded& t) { return Swap(t); });
    } else if (what < 9) {
      actor.Look([](Recorded& t) { return Walk(t); });
    } else {
      actor.LookBack([](Recorded& t) { return Walk(t); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Walk(t); });
  }

 private:
  static void Point(Recorded& t, size_t from, size_t to) {
    t.Set(t.actor().scene().cells[from], t.actor().Value(std::to_string(to)));
  }

  static absl::StatusOr<size_t> Next(Recorded& t, size_t from) {
    const std::vector<CellName>& cells = t.actor().scene().cells;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> value, t.Get(cells[from]));
    size_t next = cells.size();
    if (value.has_value()) std::from_chars(value->data(), value->data() + value->size(), next);
    if (next < cells.size()) return next;
    t.actor().scene().Fail("cycle", StrCat("T", t.id(), " finds nothing in ", KeyOf(cells[from])));
    return absl::DataLossError("no pointer");
  }

  // a -> b -> c -> d becomes a -> c -> b -> d.
  static absl::Status Swap(Recorded& t) {
    const size_t a = t.actor().Draw(t.actor().scene().cells.size());
    PERCOLATOR_ASSIGN_OR_RETURN(const size_t b, Next(t, a));
    PERCOLATOR_ASSIGN_OR_RETURN(const size_t c, Next(t, b));
    PERCOLATOR_ASSIGN_OR_RETURN(const size_t d, Next(t, c));
    Point(t, a, c);
    Point(t, c, b);
    Point(t, b, d);
    return absl::OkStatus();
  }

  static absl::Status Walk(Recorded& t) {
    const size_t size = t.actor().scene().cells.size();
    const size_t first = t.actor().Draw(size);
    size_t at = first;
    for (size_t steps = 1; steps <= size; ++steps) {
      PERCOLATOR_ASSIGN_OR_RETURN(const size_t next, Next(t, at));
      at = next;
      if ((at == first) != (steps == size)) {
        t.actor().scene().Fail("cycle", StrCat("T", t.id(), " is at ", at, " after ", steps, " steps from ", first,
                                               " in a ring of ", size));
        break;
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewCycle() { return std::make_unique<Cycle>(); }

}  // namespace percolator::sim
