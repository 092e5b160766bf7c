// SPDX-License-Identifier: Apache-2.0

// StoreServer: the one store that all simulated processes talk to.
//
// It keeps its data in a MemoryStore, which acts as the disk: applied changes survive a restart of the server. Requests
// arrive through the network (sim/network.h) as events and never block. A request that must wait, because a commit in
// one step has closed its row, is kept and retried when a row opens.
//
// A commit in one step (Store::MutateTogether) takes three events, with time for others between them:
//
//     close the rows, check the conditions   ->   draw the timestamp   ->   apply all, open the rows, answer
//
// so that code that does not wait for closed rows, or draws too early, is caught (mutants OneStepReaderDoesNotWait and
// OneStepTimestampEarly). If the server restarts in between, the commit is lost, or applied without an answer.
//
// A StoreWatcher sees every row mutation with the row before and after it, and every read.

#ifndef PERCOLATOR_SIM_STORE_SERVER_H_
#define PERCOLATOR_SIM_STORE_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "sim/network.h"
#include "sim/sim_oracle.h"

namespace percolator::sim {

// The sender of a request.
struct Origin {
  const Process* process = nullptr;
  bool duplicate = false;  // the request arrives for the second time
};

// A row mutation that was applied.
struct RowChange {
  Duration time;
  Origin origin;
  const RowMutation& mutation;      // of a commit in one step with the drawn timestamp
  const std::vector<Cell>& before;  // the whole row, by family, column, newest first; empty unless WantsRows()
  const std::vector<Cell>& after;
};

struct ServedRead {
  Duration time;
  Origin origin;
  const RowRead& read;
  const Row& row;
};

// A part of a scan, read at one moment: all rows of [start, end) with a selected cell. No end: to the end of the range
// of the request.
struct ServedScan {
  Duration time;
  Origin origin;
  const ScanRequest& request;  // with rows.start at `start`
  const std::optional<std::string>& end;
  const std::vector<Row>& rows;
};

// Called in the middle of events: must not wait.
class StoreWatcher {
 public:
  virtual ~StoreWatcher() = default;
  // Whether OnRow shows the rows before and after a mutation, which takes time.
  virtual bool WantsRows() const { return true; }
  virtual void OnMutation(const RowChange& /*change*/) {}
  virtual void OnRead(const ServedRead& /*read*/) {}
  virtual void OnScan(const ServedScan& /*scan*/) {}
  // The answer, with all rows of the read or scan, has reached the process that asked.
  virtual void OnHeard(const Process& /*process*/, const std::vector<Selector>& /*selectors*/, const Row& /*row*/) {}
  // The safe point after a call that may have raised it.
  virtual void OnSafePoint(Duration /*time*/, Timestamp /*safe_point*/) {}
};

class StoreServer final : public Server {
 public:
  StoreServer(Kernel* kernel, OracleServer* oracle);

  // The data itself, without network and faults, for the start and the end of a run. The watcher does not see changes
  // made here.
  Store* disk() { return disk_.get(); }
  // May be null; must outlive this.
  void SetWatcher(StoreWatcher* watcher) { watcher_ = watcher; }
  // For SimStore: a row that a process asked for has reached it.
  void Heard(const Process& process, const std::vector<Selector>& selectors, const Row& row) {
    if (watcher_ != nullptr) watcher_->OnHeard(process, selectors, row);
  }
  // Whether any row is closed now.
  bool any_closed() const { return !closed_.empty(); }

  // A batch of mutations of one row, evaluated one after the other.
  using RowMutations = std::vector<RowMutation>;
  using MutateResults = std::vector<DrawnResult>;

  void Read(const Origin& origin, std::shared_ptr<const RowRead> read, Responder<absl::StatusOr<Row>> reply);
  void Scan(const Origin& origin, const ScanRequest& request, Responder<absl::StatusOr<ScanPage>> reply);
  void Mutate(const Origin& origin, std::shared_ptr<const RowMutations> mutations, Responder<MutateResults> reply);
  // Draws some time after the mutations were applied.
  void MutateThenDraw(const Origin& origin, std::shared_ptr<const RowMutations> mutations,
                      Responder<MutateResults> reply);
  void MutateTogether(const Origin& origin, std::shared_ptr<const JointMutation> mutation,
                      Responder<absl::StatusOr<JointResult>> reply);
  absl::Status RaiseSafePoint(Timestamp ts);

 private:
  using RowName = std::pair<std::string, std::string>;  // table and row
  struct ScanTask;
  struct Joint;

  void OnRestart() override;

  MutateResults ApplyAll(const Origin& origin, const RowMutations& mutations);
  absl::StatusOr<MutateResult> Apply(const Origin& origin, const RowMutation& mutation);
  std::vector<Cell> RowForWatcher(const std::string& table, const std::string& row);
  void ContinueScan(std::shared_ptr<ScanTask> scan);

  // The steps of a commit in one step, which is identified by its number.
  void BeginJoint(std::shared_ptr<Joint> joint);
  void DrawForJoint(uint64_t number);
  void ApplyJoint(uint64_t number);
  absl::StatusOr<JointResult> CheckJoint(const JointMutation& mutation);
  absl::StatusOr<JointResult> ApplyRows(const Joint& joint);
  void FinishJoint(uint64_t number, absl::StatusOr<JointResult> result);
  Duration StepLength();
  void AfterAWhile(uint64_t number, void (StoreServer::*step)(uint64_t));

  bool IsClosed(const std::string& table, const std::string& row) const;
  bool AnyClosed(const JointMutation& mutation) const;
  void TryAgainWhenOpen(Scheduler::Action action) { waiting_.push_back(std::move(action)); }

  void Watch(const Origin& origin, const ScanRequest& step, const ScanPage& part);
  void Log(const Origin& origin, std::string_view what, std::string_view outcome);
  void LogJoint(const Joint& joint, const absl::StatusOr<JointResult>& result);

  const std::unique_ptr<Store> disk_;
  OracleServer* const oracle_;
  StoreWatcher* watcher_ = nullptr;

  std::set<RowName> closed_;
  std::vector<Scheduler::Action> waiting_;             // for a row to open
  std::map<uint64_t, std::shared_ptr<Joint>> joints_;  // those with closed rows
  uint64_t next_joint_ = 1;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_STORE_SERVER_H_
