// SPDX-License-Identifier: Apache-2.0

// ForwardingStore and ForwardingCoordinator: forward every call to another one. Override what
// should differ.

#ifndef PERCOLATOR_SPI_FORWARDING_H_
#define PERCOLATOR_SPI_FORWARDING_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/store.h"

namespace percolator {

// Each method is forwarded by itself. Prewrites use MutateThenDraw and one-step commits
// MutateTogether, so a store that changes how rows are written overrides them together with Mutate.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override {
    return store_->Read(reads);
  }
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override {
    return store_->Scan(request);
  }
  std::vector<absl::StatusOr<MutateResult>> Mutate(
      const std::vector<RowMutation>& mutations) override {
    return store_->Mutate(mutations);
  }
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    return store_->MutateThenDraw(mutations);
  }
  bool CanMutateTogether() const override { return store_->CanMutateTogether(); }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation,
                                             Oracle* oracle) override {
    return store_->MutateTogether(mutation, oracle);
  }
  absl::Status RaiseSafePoint(Timestamp ts) override { return store_->RaiseSafePoint(ts); }
  absl::StatusOr<Timestamp> SafePoint() override { return store_->SafePoint(); }
  absl::StatusOr<Timestamp> SafePointOfReads() override { return store_->SafePointOfReads(); }
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override {
    return store_->SampleRowKeys(name);
  }
  absl::Status CreateTable(const TableInfo& info) override { return store_->CreateTable(info); }
  absl::Status DropTable(const std::string& name) override { return store_->DropTable(name); }
  absl::StatusOr<std::vector<TableInfo>> ListTables() override { return store_->ListTables(); }
  absl::StatusOr<TableInfo> GetTable(const std::string& name) override {
    return store_->GetTable(name);
  }
  absl::Status Close() override { return store_->Close(); }

 protected:
  Store* store() const { return store_.get(); }

 private:
  const std::shared_ptr<Store> store_;
};

class ForwardingCoordinator : public Coordinator {
 public:
  explicit ForwardingCoordinator(std::shared_ptr<Coordinator> coordinator)
      : coordinator_(std::move(coordinator)) {}

  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override {
    return coordinator_->OpenSession();
  }
  absl::StatusOr<bool> IsAlive(SessionId session) override {
    return coordinator_->IsAlive(session);
  }
  absl::StatusOr<Timestamp> OldestSnapshot() override { return coordinator_->OldestSnapshot(); }
  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override {
    return coordinator_->Campaign(role, session);
  }
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row,
                             const Session& session) override {
    return coordinator_->Claim(table, row, session);
  }
  absl::Status Release(std::string_view table, std::string_view row,
                       const Session& session) override {
    return coordinator_->Release(table, row, session);
  }
  void SendHint(const CellName& cell) override { coordinator_->SendHint(cell); }
  void SetHintListener(HintListener listener) override {
    coordinator_->SetHintListener(std::move(listener));
  }

 protected:
  Coordinator* coordinator() const { return coordinator_.get(); }

 private:
  const std::shared_ptr<Coordinator> coordinator_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SPI_FORWARDING_H_
