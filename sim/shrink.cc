// SPDX-License-Identifier: Apache-2.0

#include "sim/shrink.h"

#include <algorithm>
#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {
namespace {

struct SizeField {
  std::string_view name;
  size_t Plan::*size;
  size_t least;
};
constexpr SizeField kSizes[] = {
    {"processes", &Plan::processes, 1}, {"tasks", &Plan::tasks, 1}, {"steps", &Plan::steps, 1},
    {"keys", &Plan::keys, 2},           {"cells", &Plan::cells, 1},
};

class Shrinker {
 public:
  Shrinker(const Scenario& failing, const Attempt& attempt) : attempt_(attempt), best_(failing) {}

  Scenario Run() {
    if (!Take(best_)) return best_;
    SwitchRatesOff();
    HalveSizes();
    SwitchRatesOff();
    SuppressFaults();
    return best_;
  }

 private:
  // Accepts the candidate if it fails in the same way.
  bool Take(Scenario candidate) {
    std::optional<std::vector<FaultId>> happened = attempt_(candidate);
    if (!happened.has_value()) return false;
    best_ = std::move(candidate);
    happened_ = *std::move(happened);
    return true;
  }

  void SwitchRatesOff() {
    for (const RateField& field : RateFields()) {
      if (best_.plan.faults.rates.*field.rate == 0) continue;
      Scenario candidate = best_;
      SwitchOff(field.name, &candidate.plan);
      candidate.rates_off.emplace_back(field.name);
      Take(std::move(candidate));
    }
  }

  void HalveSizes() {
    for (const SizeField& field : kSizes) {
      bool smaller = true;
      while (smaller && best_.plan.*field.size > field.least) {
        Scenario candidate = best_;
        const size_t half = std::max(field.least, candidate.plan.*field.size / 2);
        candidate.plan.*field.size = half;
        const std::string option = StrCat("--", field.name, "=");
        std::erase_if(candidate.changes, [&](const std::string& change) { return change.starts_with(option); });
        candidate.changes.push_back(StrCat(option, half));
        smaller = Take(std::move(candidate));
      }
    }
  }

  // Removes as many faults as possible: first halves, then quarters, and so on to single ones.
  void SuppressFaults() {
    std::vector<FaultId> left = happened_;
    for (size_t piece = std::max<size_t>(left.size() / 2, 1); piece > 0 && !left.empty(); piece /= 2) {
      for (size_t begin = 0; begin < left.size();) {
        const size_t end = std::min(begin + piece, left.size());
        const auto from = left.begin() + static_cast<ptrdiff_t>(begin);
        const auto to = left.begin() + static_cast<ptrdiff_t>(end);
        Scenario candidate = best_;
        candidate.suppressed.insert(candidate.suppressed.end(), from, to);
        if (Take(std::move(candidate))) {
          left.erase(from, to);
        } else {
          begin = end;
        }
      }
    }
  }

  const Attempt& attempt_;
  Scenario best_;
  std::vector<FaultId> happened_;  // in the best scenario
};

}  // namespace

bool SwitchOff(std::string_view rate, Plan* plan) {
  for (const RateField& field : RateFields()) {
    if (field.name != rate) continue;
    plan->faults.rates.*field.rate = 0;
    return true;
  }
  return false;
}

Scenario Shrink(const Scenario& failing, const Attempt& attempt) { return Shrinker(failing, attempt).Run(); }

}  // namespace percolator::sim
