// What the tests of found bugs put a cluster on: an oracle that counts, a store that can be interfered with.

#ifndef PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_
#define PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"

namespace percolator {

inline constexpr uint64_t kHour = uint64_t{3600} * 1'000'000;

class StepOracle : public Oracle {
 public:
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    if (failures > 0 && failures-- > 0) return absl::UnavailableError("no oracle");
    return Timestamp(next.fetch_add(count));
  }
  std::atomic<uint64_t> next{10 * kHour};
  std::atomic<int> failures{0};
};

// Forwards every call, except what a test wants to be different.
class HookedStore : public ForwardingStore {
 public:
  // `store` must outlive this.
  explicit HookedStore(Store* store) : ForwardingStore(Borrow(store)) {}

  std::function<absl::StatusOr<JointResult>(const JointMutation&, Oracle*)> together;
  std::function<void(const std::vector<RowMutation>&)> before_mutate;
  std::function<void()> after_list;
  std::atomic<bool> down{false};
  std::atomic<int> failing_lists{0};  // calls of ListTables
  std::atomic<int> asked_for_safe_point{0};

  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    if (down) return std::vector<absl::StatusOr<MutateResult>>(mutations.size(), absl::UnavailableError("down"));
    if (before_mutate) before_mutate(mutations);
    return ForwardingStore::Mutate(mutations);
  }
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    return Store::MutateThenDraw(mutations);  // which calls Mutate
  }
  bool CanMutateTogether() const override { return true; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override {
    const auto hook = together;  // which may be replaced by itself
    return hook ? hook(mutation, oracle) : ForwardingStore::MutateTogether(mutation, oracle);
  }
  absl::StatusOr<Timestamp> SafePoint() override {
    ++asked_for_safe_point;
    return ForwardingStore::SafePoint();
  }
  absl::StatusOr<std::vector<TableInfo>> ListTables() override {
    if (failing_lists > 0 && failing_lists-- > 0) return absl::UnavailableError("no list");
    auto tables = ForwardingStore::ListTables();
    if (after_list) std::exchange(after_list, nullptr)();
    return tables;
  }
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_
