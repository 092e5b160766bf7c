// Engine: everything that the handles of one cluster share in one process.
//
// OWNERSHIP  Every handle (Cluster, Snapshot, Transaction, a scan, Worker, Loader, Inspector) holds the engine by
//            std::shared_ptr. The tasks that the engine runs itself do not. So the last handle ends it, from outside.
// CLOSE      Ends everything that waits, has threads or files: tasks, session and parts. Plain memory (the snapshots that
//            are open, what was learned of reads, counters) stays until the last handle is gone, so handles may be destroyed
//            in any order, before and after.
// CALLS      Every call of a handle that needs more than that memory runs in InCall, which fails once the engine is closed.
//            Close waits for those that have begun. Only Inspector::Check runs functions of the user in a call.

#ifndef PERCOLATOR_TXN_ENGINE_H_
#define PERCOLATOR_TXN_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

namespace percolator {

// Runs functions of the user on tasks of its own: a Worker, a Loader.
class Service {
 public:
  virtual ~Service() = default;
  // Returns when no function of the user is running, and none will be. Called by Engine::Close. Thread-safe.
  virtual void StopForClose() = 0;
};

namespace internal {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Whether Close also closes the store.
  enum class StoreIs : uint8_t { kOwned, kShared };

  static std::shared_ptr<Engine> Make(Parts parts, StoreIs store_is, std::unique_ptr<Session> session,
                                      const ClusterOptions& options);
  // Closes, if Close was not called.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns fn(), a Status or StatusOr, or the error that the cluster is closed. An error of a call that was cut short by
  // Close is that one too. `fn` must not run functions of the user.
  template <typename Fn>
  auto InCall(const Fn& fn) -> decltype(fn()) {
    const CallGate::Call call(&gate_);
    if (!call.ok() || forks_.forked()) return Closed();
    decltype(fn()) result = fn();
    if (!result.ok() && gate_.closed()) return Closed();
    return result;
  }
  // Close was called.
  bool closing() const { return closing_; }
  // True as soon as calls fail.
  const std::atomic<bool>& closed() const { return gate_.closed(); }
  // This process is a child, by fork, of the one that made the engine: nothing works here.
  bool forked() const { return forks_.forked(); }
  // The error of every call when the cluster is closed, or in a forked process.
  absl::Status Closed() const;

  // Has Close stop the service. False: the cluster is closed or being closed, and nothing was added.
  bool AddService(const std::shared_ptr<Service>& service);

  // A function of the user, run by a service. While it lives, its task can't close the cluster.
  class UserTask {
   public:
    explicit UserTask(Engine* engine);
    ~UserTask();
    UserTask(const UserTask&) = delete;
    UserTask& operator=(const UserTask&) = delete;

   private:
    Engine* const engine_;
  };
  // Whether the caller is within a UserTask.
  bool InUserTask() const;

  // Runs `run` every so often, until Close.
  void StartPeriodic(Duration period, std::function<void()> run);

  // Stops services, then everything else. A second call returns what the first one returned, when that has ended.
  absl::Status Close();

  Environment env;
  SnapshotRegistry snapshots;
  Predictor predictor;

  // What Close ends; there until then.
  std::optional<Tables> tables;
  std::unique_ptr<Session> session;
  std::optional<RowClaims> claims;  // of the workers, as hints
  std::optional<HintListeners> hints;
  std::optional<SecondaryQueue> secondaries;
  std::optional<LockKeeper> keeper;

 private:
  Engine(Parts parts, StoreIs store_is, std::unique_ptr<Session> session, const ClusterOptions& options);
  // Returns false if another call has closed, or closes, the engine; then `*status` is what that one returned.
  bool BeginClose(absl::Status* status);
  void StopServices();
  absl::Status ReleaseParts();

  const ForkWatch forks_;
  const StoreIs store_is_;
  Parts parts_;
  CallGate gate_;
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
