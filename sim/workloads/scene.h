// SPDX-License-Identifier: Apache-2.0

// Scene: the state that all participants of a run share. Actor: one task that uses the cluster, and records its work.

#ifndef PERCOLATOR_SIM_WORKLOADS_SCENE_H_
#define PERCOLATOR_SIM_WORKLOADS_SCENE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "sim/history/history.h"
#include "sim/invariants.h"
#include "sim/plan.h"
#include "sim/world.h"

namespace percolator::sim {

struct Scene {
  // A commit whose outcome its client does not know.
  struct Open {
    TxnId txn;
    CommitResult result;
  };

  // All arguments must outlive it. `all_cells` are those that the workload may ever write, in order.
  Scene(const Plan& its_plan, World* its_world, Invariants* its_invariants, std::vector<CellName> all_cells)
      : plan(its_plan), world(*its_world), invariants(*its_invariants), cells(std::move(all_cells)) {}

  // Fails the run and stops it. Only the first failure counts.
  void Fail(std::string_view checker, std::string_view text) { invariants.Violated(checker, text); }
  bool failed() const { return invariants.violation().has_value(); }

  const Plan& plan;
  World& world;
  Invariants& invariants;
  const std::vector<CellName> cells;
  HistoryRecorder history;
  std::vector<Open> open;
  std::vector<TxnId> as_of;        // snapshots of times that their readers chose
  std::vector<TxnId> runs;         // of observers, which do not learn the outcome of their transactions
  std::vector<Timestamp> moments;  // timestamps that were seen, for reads of the past
  int64_t next_value = 1'000'001;  // no value is written twice; long numbers make long lists
  bool winding_down = false;       // no new work
};

// The name of a cell in the history.
std::string KeyOf(const CellName& cell);

// The number at the beginning of a value; zero if it is absent.
int64_t NumberIn(const std::optional<std::string>& value);

class Actor;

// A view of the data that records its reads and writes. A read that fails is not recorded: it has revealed nothing.
class Recorded {
 public:
  // `writes` is null in a snapshot.
  Recorded(Actor* actor, const ReadView* view, ReadWrite* writes, HistoryRecorder::Handle handle)
      : actor_(*actor), view_(*view), writes_(writes), handle_(handle) {}

  absl::StatusOr<std::optional<std::string>> Get(const CellName& cell);
  absl::StatusOr<std::vector<std::optional<std::string>>> Get(const std::vector<CellName>& cells);
  // Also records the result: all cells of the scene in the range, absent or not.
  absl::StatusOr<std::map<CellName, std::string>> Scan(const std::string& table, const ScanOptions& options = {});

  // REQUIRES: not a snapshot. As in ReadWrite, an error stays: it fails later reads and the commit. A write that fails,
  // and those after it, are not recorded.
  void Set(const CellName& cell, std::string_view value);
  void Delete(const CellName& cell);
  void Verify(const CellName& cell);
  // Not part of the history.
  void Notify(const CellName& cell);
  // Appends the element to the list in the cell.
  absl::Status Append(const CellName& cell, int64_t element);

  Actor& actor() { return actor_; }
  TxnId id() const { return handle_.id(); }

 private:
  friend class Actor;
  void NoteStart();

  Actor& actor_;
  const ReadView& view_;
  ReadWrite* const writes_;
  HistoryRecorder::Handle handle_;
};

class Actor {
 public:
  using Body = std::function<absl::Status(Recorded&)>;

  // `number` names it in the history.
  Actor(Scene* scene, Client* client, const Cluster* cluster, int number)
      : scene_(*scene), client_(*client), cluster_(*cluster), number_(number) {}

  // Whether the process lives and the run has not failed.
  bool alive() const { return !client_.process().crashed() && !scene_.failed(); }

  // A number in [0, n).
  uint64_t Draw(uint64_t n) { return scene_.world.Draw(client_.process(), n); }
  bool Percent(uint64_t percent) { return Draw(100) < percent; }
  void Sleep(Duration most);
  // Distinct random cells of the plan: as many as a transaction has, or fewer.
  std::vector<CellName> SomeCells();
  const CellName& AnyCell() { return scene_.cells[Draw(scene_.cells.size())]; }
  // A number that was not returned before.
  int64_t NewNumber() { return scene_.next_value++; }
  // `text`, sometimes so long that it does not fit into a record.
  std::string Value(std::string_view text);
  // The text of a value of Value().
  static std::string_view TextOf(std::string_view value) { return value.substr(0, value.find('~')); }

  // Runs the body in a transaction, by hand or by Cluster::Transact. Returns true if it is known to have committed.
  bool Transact(const Body& body);
  bool ByHand(const Body& body);
  // The body may run several times, each in a transaction of its own.
  bool WithRetries(const Body& body);
  // Runs the body in a snapshot, of now or of a time in the past.
  void Look(const Body& body);
  void LookBack(const Body& body);
  // Runs the body in the transaction of an observer.
  absl::Status Observe(ReadWrite& t, const Body& body);
  void CollectGarbage();

  Scene& scene() { return scene_; }
  const Cluster& cluster() const { return cluster_; }
  Process& process() { return client_.process(); }
  int number() const { return number_; }
  // Adds a line to the trace.
  void Note(std::string_view what);

 private:
  TransactionOptions Options();
  void Ended(HistoryRecorder::Handle handle, const CommitResult& result);
  void Failed(HistoryRecorder::Handle handle, Timestamp start_ts);
  void InspectLock(HistoryRecorder::Handle handle, absl::StatusOr<Snapshot> snapshot, const Body& body);
  void Saw(Timestamp ts);

  Scene& scene_;
  Client& client_;
  const Cluster& cluster_;  // not a copy: the process ends when its Program drops the last handle
  const int number_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_WORKLOADS_SCENE_H_
