// SPDX-License-Identifier: Apache-2.0

// Worker::Impl: dispatch, scanners, and the process's hints and claims. See percolator/observer.h.
//
// HINTS    Come through the process's HintListeners. A hint of the cell ObserversCell() means that the observers have changed: no
//          marks are removed before they have been read again.
// REFRESH  The observers are also read after each half of the lease, as Cluster does for the transactions.

#ifndef PERCOLATOR_OBSERVE_WORKER_IMPL_H_
#define PERCOLATOR_OBSERVE_WORKER_IMPL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/spi/mutex.h"
#include "src/base/periodic.h"
#include "src/observe/dispatch.h"
#include "src/observe/registry.h"
#include "src/observe/scanner.h"
#include "src/txn/engine.h"

namespace percolator {

class Worker::Impl final : public Service, public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Engine> engine, const WorkerOptions& options);

  void Observe(ObserverSpec spec);
  absl::Status Start();
  absl::Status Stop();
  void StopForClose() override;
  void Pause();
  void Resume();
  absl::Status WaitUntilIdle(Duration timeout);
  absl::Status Backfill(std::string_view observer);
  std::vector<ObserverMetrics> metrics() const;
  std::string DescribeGraph() const;
  Engine* engine() const { return engine_; }
  absl::StatusOr<std::vector<Quarantined>> ListQuarantine() const;
  absl::Status Replay(const Quarantined& entry);
  absl::Status Drop(const Quarantined& entry);

 private:
  enum class State : uint8_t { kNew, kStarting, kStarted, kStopping, kStopped };

  State state() const;
  // Whether dispatch and scanner exist.
  bool HasParts() const { return state() >= State::kStarted; }
  void SetState(State state);
  absl::Status CheckStarted() const;
  absl::Status StartParts();
  void MakeParts();
  void OnHint(const CellName& cell);
  // Reads the observers of the cluster. Of two concurrent calls, the result of the later one holds.
  absl::Status Reload();
  void Reloaded(uint64_t turn, std::vector<ObserverInfo> infos);
  void Refresh();
  // Returns whether there is nothing to do. If not, `what` says why.
  absl::StatusOr<bool> IsIdle(std::string* what);
  // Marks all values of an observer's column as changed.
  absl::Status MarkExisting(const ObserverInfo& info);
  // By name, among this worker's observers and those of the cluster.
  absl::StatusOr<ObserverInfo> FindObserver(std::string_view name) const;

  const std::shared_ptr<Engine> owner_;
  Engine* const engine_;
  const WorkerOptions options_;
  std::vector<ObserverSpec> specs_;

  std::unique_ptr<Dispatch> dispatch_;
  std::unique_ptr<Scanner> scanner_;
  uint64_t listener_ = 0;
  std::atomic<uint64_t> turns_{0};  // of Reload
  mutable Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;  // signals a change of the state
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ObserverInfo> infos_ ABSL_GUARDED_BY(mutex_);  // of the cluster
  std::unique_ptr<Periodic> refresher_;                      // last: its task uses the rest
};

// Cluster::CountNotifications.
absl::StatusOr<Backlog> CountBacklog(Engine* engine, size_t limit);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_WORKER_IMPL_H_
