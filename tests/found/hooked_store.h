// What the tests of found bugs put a cluster on: an oracle that counts, a store that can be interfered with.

#ifndef PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_
#define PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "percolator/oracle.h"
#include "percolator/store.h"

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

// Passes everything on, but for what a test wants done otherwise.
class HookedStore : public Store {
 public:
  explicit HookedStore(Store* store) : store_(store) {}

  std::function<absl::StatusOr<JointResult>(const JointMutation&, Oracle*)> together;
  std::function<void(const std::vector<RowMutation>&)> before_mutate;
  std::function<void()> after_list;
  std::atomic<bool> down{false};
  std::atomic<int> asked_for_safe_point{0};

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override { return store_->Read(reads); }
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override { return store_->Scan(request); }
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override {
    if (down) return std::vector<absl::StatusOr<MutateResult>>(mutations.size(), absl::UnavailableError("down"));
    if (before_mutate) before_mutate(mutations);
    return store_->Mutate(mutations);
  }
  bool CanMutateTogether() const override { return true; }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override {
    const auto hook = together;  // which may be replaced by itself
    return hook ? hook(mutation, oracle) : store_->MutateTogether(mutation, oracle);
  }
  absl::Status RaiseSafePoint(Timestamp ts) override { return store_->RaiseSafePoint(ts); }
  absl::StatusOr<Timestamp> SafePoint() override {
    ++asked_for_safe_point;
    return store_->SafePoint();
  }
  absl::StatusOr<Timestamp> SafePointOfReads() override { return store_->SafePointOfReads(); }
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override {
    return store_->SampleRowKeys(name);
  }
  absl::Status CreateTable(const TableInfo& info) override { return store_->CreateTable(info); }
  absl::Status DropTable(const std::string& name) override { return store_->DropTable(name); }
  absl::StatusOr<std::vector<TableInfo>> ListTables() override {
    auto tables = store_->ListTables();
    if (after_list) std::exchange(after_list, nullptr)();
    return tables;
  }
  absl::Status Close() override { return store_->Close(); }

 private:
  Store* const store_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_FOUND_HOOKED_STORE_H_
