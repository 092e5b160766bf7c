// SPDX-License-Identifier: Apache-2.0

// LoaderCore: the core of a Loader. It knows the cluster only as a few functions, so that it can be tested without one.
//
// BACK-PRESSURE  LoaderCore counts the waiting notifications periodically. In between, it adds all notifications that
// its own transactions have made since. So the bound is exceeded at most by the transactions under way, one in each
// thread. When this estimate reaches the bound, the next count comes soon.

#ifndef PERCOLATOR_RECIPES_LOADER_CORE_H_
#define PERCOLATOR_RECIPES_LOADER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/loader.h"
#include "percolator/observer.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/txn/engine.h"

namespace percolator {

struct LoaderCallbacks {
  Runtime* runtime = nullptr;
  // Runs the function in a transaction, retries after a conflict, commits, and destroys the function. Sets `*marks` to
  // the number of notifications that the commit made.
  std::function<absl::Status(Loader::Function load, const TransactionOptions& options, size_t* marks)> transact;
  // Returns the number of waiting notifications, counted up to `limit`.
  std::function<absl::StatusOr<Backlog>(size_t limit)> backlog;
  // Returns the error of functions that do not run because the cluster was closed.
  std::function<absl::Status()> closed;
};

namespace internal {

class LoaderCore final : public Service {
 public:
  // With an error, it runs nothing, and Finish returns the error.
  LoaderCore(LoaderCallbacks callbacks, LoaderOptions options, absl::Status error = absl::OkStatus());
  ~LoaderCore() override;

  using Function = Loader::Function;

  void Add(Function load);
  absl::Status Finish();
  LoadProgress progress() const;
  // Drops waiting functions, and returns when running ones have ended.
  void StopForClose() override;

 private:
  // The tasks.
  void Work();
  void Watch();
  void Report();
  void StartTask(void (LoaderCore::*task)());

  absl::Status Run(Function load, size_t* marks);
  // Calls on_progress. Returns an error if it throws.
  absl::Status CallOnProgress(const LoadProgress& progress) const;
  void NoteEnd(const absl::Status& status, size_t marks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteBacklog(const absl::StatusOr<Backlog>& backlog, uint64_t marks_before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the tasks, which end when nothing waits.
  void EndTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepError(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool is_idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_.empty() && running_ == 0; }
  bool MayBegin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EstimateIsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LoadProgress ProgressNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Sample {
    Duration at;
    uint64_t done;
  };

  const LoaderCallbacks callbacks_;
  const LoaderOptions options_;
  const Duration begun_;
  const std::unique_ptr<WaitQueue> room_;     // signals room in the queue, for Add
  const std::unique_ptr<WaitQueue> work_;     // signals a function that may begin
  const std::unique_ptr<WaitQueue> changed_;  // signals anything else

  mutable Mutex mutex_;
  std::deque<Function> waiting_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> samples_ ABSL_GUARDED_BY(mutex_);

  uint64_t marks_ ABSL_GUARDED_BY(mutex_) = 0;           // made by this loader
  uint64_t marks_at_count_ ABSL_GUARDED_BY(mutex_) = 0;  // the value at the start of the last count
  Backlog backlog_ ABSL_GUARDED_BY(mutex_);              // the result of the last count
  bool counted_ ABSL_GUARDED_BY(mutex_) = false;         // whether there was a count since there was work

  const bool usable_;                              // no error from the beginning
  bool bounded_ ABSL_GUARDED_BY(mutex_);           // the backlog is counted
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // no function can be added any more
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;    // functions may be dropped, because the cluster is closed
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;  // the end was reported
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // the tasks have to end
  int tasks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace internal

using internal::LoaderCore;

}  // namespace percolator

#endif  // PERCOLATOR_RECIPES_LOADER_CORE_H_
