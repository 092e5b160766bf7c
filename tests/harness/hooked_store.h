// SPDX-License-Identifier: Apache-2.0

// HookedStore: a store whose calls a test can change, by kind of call. wire.h changes calls by their number.

#ifndef PERCOLATOR_TESTS_HARNESS_HOOKED_STORE_H_
#define PERCOLATOR_TESTS_HARNESS_HOOKED_STORE_H_

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "percolator/spi/forwarding.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"

namespace percolator {

// Forwards every call that the test does not replace.
class HookedStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::function<absl::StatusOr<JointResult>(const JointMutation&, Oracle*)> together;  // instead of MutateTogether
  std::function<void(const std::vector<RowMutation>&)> before_mutate;                  // of all kinds
  std::function<void()> after_list;                                                    // by the first ListTables
  std::atomic<bool> down{false};                                                       // Mutate fails
  std::atomic<int> failing_lists{0};  // the number of calls of ListTables that fail
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
    if (before_mutate) before_mutate(mutation.rows);
    const auto hook = together;  // a copy, because it may replace itself
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

#endif  // PERCOLATOR_TESTS_HARNESS_HOOKED_STORE_H_
