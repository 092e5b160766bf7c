// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/client.h"

#include <algorithm>
#include <utility>

#include "src/txn/commit.h"
#include "src/txn/get.h"
#include "src/txn/prewrite.h"

namespace percolator {
namespace {

// Longer than any script.
constexpr Duration kLong = std::chrono::hours(24);

bool HasOneOf(const RowWrites& row, const std::vector<CellName>& cells) {
  return std::any_of(cells.begin(), cells.end(), [&](const CellName& cell) {
    return cell.table == row.table && cell.row == row.row &&
           std::any_of(row.cells.begin(), row.cells.end(), [&](const CellWrite& w) { return w.column == cell.column; });
  });
}

// A lock with this write in it. Its primary is elsewhere unless `primary` is null.
CellWrite WriteOf(const CellName& cell, const BufferedWrite& write, const CellName* primary) {
  CellWrite out{cell.column, {}, {}};
  out.lock.kind = write.kind;
  if (primary != nullptr) out.lock.primary = *primary;
  if (write.kind != WriteKind::kPut) return out;
  if (write.value.size() <= kInlineBytes) {
    out.lock.value = write.value;
  } else {
    out.long_value = write.value;
  }
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Start(std::string name, const Parts& parts, Network* network,
                                                      const ClusterOptions& options) {
  std::unique_ptr<Client> client(new Client(std::move(name), parts, network));
  Parts own = parts;
  own.store = Borrow(&client->store_);
  absl::StatusOr<Cluster> cluster = Assemble(std::move(own), options);
  if (!cluster.ok()) return cluster.status();
  client->cluster_ = *cluster;
  client->transaction_ = std::make_unique<Transaction>(*cluster, TransactionOptions{.timeout = kLong});
  return client;
}

absl::Status Client::Begin() {
  if (absl::Status s = transaction_->core().MayRead(); !s.ok()) return s;
  start_ts_ = transaction_->timestamp();
  begun_ = env().runtime->Elapsed();
  return absl::OkStatus();
}

absl::Status Client::OpenSnapshot(std::optional<Timestamp> ts) {
  transaction_.reset();
  absl::StatusOr<Snapshot> snapshot = ts.has_value() ? cluster_->GetSnapshotAt(*ts) : cluster_->GetSnapshot();
  if (!snapshot.ok()) return snapshot.status();
  snapshot_.emplace(*std::move(snapshot));
  start_ts_ = snapshot_->timestamp();
  return absl::OkStatus();
}

void Client::Abandon() {
  transaction_.reset();
  snapshot_.reset();
}

ReadView* Client::view() {
  if (snapshot_.has_value()) return &*snapshot_;
  return transaction_.get();
}

CommitResult Client::Commit() {
  result_ = transaction_->Commit();
  Abandon();
  return result_;
}

// As in TransactionCore: the cells in order, the first one being the primary.
absl::Status Client::BuildWrites() {
  if (!writes_.rows.empty()) return absl::OkStatus();
  if (transaction_ == nullptr || transaction_->core().writes().cells().empty()) {
    return absl::InvalidArgumentError("the transaction has written nothing");
  }
  if (absl::Status s = transaction_->status(); !s.ok()) return s;
  writes_.start_ts = start_ts_;
  const Duration age = env().runtime->Elapsed() - begun_;
  const CellName* primary = nullptr;
  for (const auto& [cell, write] : transaction_->core().writes().cells()) {
    const bool same_row =
        primary != nullptr && writes_.rows.back().table == cell.table && writes_.rows.back().row == cell.row;
    if (!same_row) writes_.rows.push_back({cell.table, cell.row, {}});
    CellWrite& out = writes_.rows.back().cells.emplace_back(WriteOf(cell, write, primary));
    out.lock.session = env().session;
    out.lock.refreshed = Timestamp(start_ts_.value() + static_cast<uint64_t>(age.count()));
    out.lock.observed = write.kind != WriteKind::kVerify && env().observed.Contains(cell.table, cell.column);
    if (primary == nullptr) primary = &cell;
  }
  return FillVerified();
}

absl::Status Client::FillVerified() {
  for (RowWrites& row : writes_.rows) {
    for (CellWrite& cell : row.cells) {
      if (cell.lock.kind != WriteKind::kVerify) continue;
      const absl::StatusOr<std::vector<std::optional<Version>>> versions =
          GetCells(env(), start_ts_, {{{row.table, row.row, cell.column}, true}}, CallDeadline());
      if (!versions.ok()) return versions.status();
      cell.lock.verified = versions->front()->commit_ts;
    }
  }
  return absl::OkStatus();
}

absl::Status Client::Prewrite(const std::vector<CellName>& only) {
  if (absl::Status s = BuildWrites(); !s.ok()) return s;
  if (!kept_.has_value()) kept_.emplace(&*engine()->keeper, writes_);
  Writes some{start_ts_, {}};
  for (const RowWrites& row : writes_.rows) {
    if (only.empty() || HasOneOf(row, only)) some.rows.push_back(row);
  }
  return percolator::Prewrite(env(), some, CallDeadline()).status();
}

absl::StatusOr<Timestamp> Client::DrawCommitTimestamp() {
  if (commit_ts_.has_value()) return *commit_ts_;
  absl::StatusOr<Timestamp> drawn = env().oracle->GetTimestamp();
  if (drawn.ok()) commit_ts_ = *drawn;
  return drawn;
}

CommitResult Client::CommitPrimary() {
  result_ = percolator::CommitPrimary(env(), writes_, *commit_ts_, CallDeadline());
  StopRefreshing();
  Abandon();
  return result_;
}

void Client::CommitSecondaries() { SecondaryQueue::Apply(&env(), BuildSecondaryCommitRows(writes_, *commit_ts_)); }

void Client::RollBack() {
  StopRefreshing();
  Abandon();
  RollBackOwn(env(), writes_, CallDeadline());
}

absl::StatusOr<CommitResult> Client::Outcome() {
  absl::StatusOr<CommitResult> result = cluster_->Resolve(result_);
  if (result.ok()) result_ = *result;
  return result;
}

absl::StatusOr<std::vector<RowMutation>> Client::RequestOf(Step step, const std::vector<CellName>& only) {
  if (absl::Status s = BuildWrites(); !s.ok()) return s;
  std::vector<RowMutation> requests;
  for (const RowWrites& row : writes_.rows) {
    if (!only.empty() && !HasOneOf(row, only)) continue;
    switch (step) {
      case Step::kPrewrite:
        requests.push_back(BuildPrewriteRow(row, start_ts_));
        break;
      case Step::kCommit:
        requests.push_back(BuildCommitRow(row, start_ts_, *commit_ts_));
        break;
      case Step::kRollBack:
        requests.push_back(BuildRollbackRow(row, start_ts_));
        break;
    }
  }
  return requests;
}

}  // namespace percolator
