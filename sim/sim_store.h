// SPDX-License-Identifier: Apache-2.0

// SimStore: the Store of one simulated process, across a faulty network.
//
// A batch of reads, or of mutations, is as many messages as it has rows: each row is read or changed at a moment of its
// own; mutations of the same row together and in order. With Faults::rows_travel_alone each message of a batch gets
// lost on its own, otherwise all get lost together. If no answer comes, the result is Unavailable: the mutation may
// have been applied, or may be later. In a dead process every call fails with Unavailable.

#ifndef PERCOLATOR_SIM_SIM_STORE_H_
#define PERCOLATOR_SIM_SIM_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "percolator/spi/store.h"
#include "sim/network.h"
#include "sim/store_server.h"

namespace percolator::sim {

class SimStore final : public Store {
 public:
  // All must outlive this.
  SimStore(Kernel* kernel, Process* process, StoreServer* server)
      : kernel_(kernel), process_(process), server_(server) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override;
  bool CanMutateTogether() const override { return kernel_->faults.one_step; }
  // The server draws from the oracle beside it, and ignores the given one.
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;
  // Closes the store for this process only; the server continues.
  absl::Status Close() override;

 private:
  absl::Status Begin(CallKind kind, Steps steps);
  std::vector<DrawnResult> SendMutations(const std::vector<RowMutation>& mutations, bool draw);
  // Sends one message that rarely gets lost.
  template <typename Answer>
  Answer Quietly(std::function<Answer()> serve, Steps steps = 0);

  Kernel* const kernel_;
  Process* const process_;
  StoreServer* const server_;
  bool closed_ = false;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_SIM_STORE_H_
