// SPDX-License-Identifier: Apache-2.0

// Client: a process of its own, with a session, that runs one transaction or reads one snapshot. The steps of its
// commit can be run one by one.
//
// The steps are those of CommitInTwoPhases, made of the same parts. Between them the client may stop, and its requests
// may arrive late or twice.

#ifndef PERCOLATOR_TESTS_HISTORIES_CLIENT_H_
#define PERCOLATOR_TESTS_HISTORIES_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "percolator/transaction.h"
#include "src/txn/background.h"
#include "src/txn/engine.h"
#include "src/txn/lock.h"
#include "src/txn/transaction_core.h"
#include "src/txn/writes.h"
#include "tests/histories/client_store.h"

namespace percolator {

class Client {
 public:
  // `parts.store` is the store behind `store`. The parts must outlive the client.
  static absl::StatusOr<std::unique_ptr<Client>> Start(std::string name, const Parts& parts, Network* network,
                                                       const ClusterOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& name() const { return name_; }
  ClientStore& store() { return store_; }
  Cluster& cluster() { return *cluster_; }
  Engine* engine() { return cluster_->engine().get(); }
  Environment& env() { return engine()->env; }

  // Begins the transaction: draws its start timestamp.
  absl::Status Begin();
  // Reads a snapshot instead: of now, or as of `ts`.
  absl::Status OpenSnapshot(std::optional<Timestamp> ts);
  // Ends the transaction or snapshot, so that it no longer holds back garbage collection. A commit ends it as well.
  void Abandon();

  // The transaction or the snapshot; null if it has ended.
  ReadView* view();
  // Null if there is none, or it has ended.
  Transaction* transaction() { return transaction_.get(); }
  Timestamp start_ts() const { return start_ts_; }

  CommitResult Commit();

  // The first phase, in all rows or only in those with one of these cells. From now on the client refreshes its lock.
  absl::Status Prewrite(const std::vector<CellName>& only);
  // Draws the commit timestamp, unless it is already drawn.
  absl::StatusOr<Timestamp> DrawCommitTimestamp();
  // REQUIRES: prewritten, and the commit timestamp is drawn.
  CommitResult CommitPrimary();
  bool prewritten() const { return !writes_.rows.empty(); }
  bool primary_committed() const { return prewritten() && result_.committed(); }
  // REQUIRES: the primary is committed.
  void CommitSecondaries();
  void RollBack();
  // Resolves the last result of a commit.
  absl::StatusOr<CommitResult> Outcome();

  // The request of a step for the rows with one of the cells (all if none is named), as it would arrive at the store.
  // REQUIRES: for a commit, its timestamp is drawn.
  enum class Step { kPrewrite, kCommit, kRollBack };
  absl::StatusOr<std::vector<RowMutation>> RequestOf(Step step, const std::vector<CellName>& only);

  // The client gives no sign of life any more. If it continues later, this was a long pause.
  void StopRefreshing() { kept_.reset(); }
  void Crash() {
    StopRefreshing();
    store_.CutOff();
    crashed_ = true;
  }
  bool crashed() const { return crashed_; }

  // A lock that it has met, and will resolve later.
  std::optional<FoundLock> met;
  // The next observer that it runs stops before it does anything.
  bool holds = false;

 private:
  Client(std::string name, const Parts& parts, Network* network)
      : name_(std::move(name)), store_(parts.store.get(), network, parts.runtime.get()) {}

  Deadline CallDeadline() { return {env().runtime, env().options.call_timeout}; }
  absl::Status BuildWrites();
  absl::Status FillVerified();

  const std::string name_;
  ClientStore store_;
  std::optional<Cluster> cluster_;
  std::unique_ptr<Transaction> transaction_;
  std::optional<Snapshot> snapshot_;
  Timestamp start_ts_;
  Duration begun_{};
  bool crashed_ = false;

  Writes writes_;  // set by the first step
  std::optional<LockKeeper::Membership> kept_;
  std::optional<Timestamp> commit_ts_;
  CommitResult result_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_CLIENT_H_
