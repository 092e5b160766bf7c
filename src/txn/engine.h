// SPDX-License-Identifier: Apache-2.0

// Engine: the state that the handles of one cluster share in one process.
//
// OWNERSHIP  Every handle (Cluster, Snapshot, Transaction, a scan, Worker, Loader, Inspector) holds the engine by
//            std::shared_ptr. The engine's own tasks do not, so the last handle destroys it, from outside of them.
// CLOSE      Ends everything that waits, or has threads or files: tasks, session and parts. Plain memory (open snapshots, what
//            was learned of reads, counters) stays until the last handle is gone, so handles may be destroyed in any order,
//            before and after.
// CALLS      Every call of a handle that needs more than that memory runs in InCall, which fails once the engine is closed.
//            Close waits for calls that have begun. Only Inspector::Check runs functions of the user in a call.

#ifndef PERCOLATOR_TXN_ENGINE_H_
#define PERCOLATOR_TXN_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "percolator/options.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "src/base/call_gate.h"
#include "src/base/fork.h"
#include "src/base/periodic.h"
#include "src/coord/hint_listeners.h"
#include "src/coord/row_claims.h"
#include "src/txn/background.h"
#include "src/txn/environment.h"
#include "src/txn/predictor.h"
#include "src/txn/snapshot_registry.h"
#include "src/txn/tables.h"
#include "src/txn/turns.h"

namespace percolator {

// Runs functions of the user on its own tasks: a Worker or a Loader.
class Service {
 public:
  virtual ~Service() = default;
  // Returns when no function of the user runs or will run. Called by Engine::Close. Thread-safe.
  virtual void StopForClose() = 0;
};

namespace internal {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Whether Close also closes the store.
  enum class StoreIs : uint8_t { kOwned, kShared };

  // `address` names the cluster in errors, unless it is empty.
  static std::shared_ptr<Engine> Make(Parts parts, StoreIs store_is, std::unique_ptr<Session> session,
                                      const ClusterOptions& options, std::string_view address = {});
  // Closes the engine unless Close was called.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns fn(), a Status or StatusOr, or the error of a closed cluster; also if Close cut the call short. `fn` must
  // not run functions of the user.
  template <typename Fn>
  auto InCall(const Fn& fn) -> decltype(fn()) {
    const CallGate::Call call(&gate_);
    if (!call.ok() || forks_.forked()) return Closed();
    decltype(fn()) result = fn();
    if (!result.ok() && gate_.closed()) result = Closed();
    return result;
  }
  // Close was called.
  bool closing() const { return closing_; }
  // True from the moment when calls fail.
  const std::atomic<bool>& closed() const { return gate_.closed(); }
  Turns& turns() { return turns_; }
  // Whether this process was forked from the one that made the engine. Then no call works.
  bool forked() const { return forks_.forked(); }
  // The error of every call when the cluster is closed, or in a forked process.
  absl::Status Closed() const;

  // Has Close stop the service. Returns false, and adds nothing, if the cluster is closed or closing.
  bool AddService(const std::shared_ptr<Service>& service);

  // A function of the user that a service runs. While this exists, its task cannot close the cluster.
  class UserTask {
   public:
    explicit UserTask(Engine* engine);
    ~UserTask();
    UserTask(const UserTask&) = delete;
    UserTask& operator=(const UserTask&) = delete;

   private:
    Engine* const engine_;
  };
  // Returns whether the caller is within a UserTask.
  bool InUserTask() const;

  // Runs `run` once every `period`, until Close.
  void StartPeriodic(Duration period, std::function<void()> run);

  // Stops services, then everything else. A second call waits for the first, and returns the same.
  absl::Status Close();

  Environment env;
  SnapshotRegistry snapshots;
  Predictor predictor;

  // These exist until Close.
  std::optional<Tables> tables;
  std::unique_ptr<Session> session;
  std::optional<RowClaims> claims;  // of the workers, as hints
  std::optional<HintListeners> hints;
  std::optional<SecondaryQueue> secondaries;
  std::optional<LockKeeper> keeper;

 private:
  Engine(Parts parts, StoreIs store_is, std::unique_ptr<Session> session, const ClusterOptions& options,
         std::string_view address);
  // Returns false if another call has closed, or closes, the engine; then `*status` is what that call returned.
  bool BeginClose(absl::Status* status);
  void StopServices();
  absl::Status ReleaseParts();

  const ForkWatch forks_;
  const std::string name_;  // "the cluster ADDRESS"
  const StoreIs store_is_;
  const std::shared_ptr<Runtime> runtime_;  // env.runtime; not ended by Close
  CallGate gate_;
  Turns turns_;
  std::vector<std::unique_ptr<Periodic>> periodic_;

  mutable Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  std::atomic<bool> closing_{false};  // set under the mutex
  std::optional<absl::Status> close_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Service>> services_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> user_tasks_ ABSL_GUARDED_BY(mutex_);  // Runtime::CurrentTask
};

}  // namespace internal

using internal::Engine;

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ENGINE_H_
