// SPDX-License-Identifier: Apache-2.0

// The background tasks of a cluster.

#ifndef PERCOLATOR_TXN_BACKGROUND_H_
#define PERCOLATOR_TXN_BACKGROUND_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "src/base/periodic.h"
#include "src/base/retry.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

// Commits secondaries after Commit has returned, those of many transactions in one batch. Readers finish any that it
// cannot commit: the transaction is committed. Thread-safe.
class SecondaryQueue {
 public:
  // At most `capacity` row mutations wait.
  SecondaryQueue(Environment* env, size_t capacity);
  // Applies the waiting mutations, if the store can be reached within a few seconds.
  ~SecondaryQueue();

  // Returns false, and takes nothing, if the queue is full.
  bool Add(std::vector<RowMutation>* mutations);
  // Waits until all earlier additions are done.
  void Drain();

  // Applies the mutations as the queue does.
  static void Apply(Environment* env, std::vector<RowMutation> mutations);

 private:
  void Loop();

  Environment* const env_;
  const size_t capacity_;
  const std::unique_ptr<WaitQueue> changed_;
  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Deadline> drain_by_ ABSL_GUARDED_BY(mutex_);  // set when stopping
  std::deque<RowMutation> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;  // number of mutations added, and of these
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;   // done
};

// Refreshes the primary locks of long commits, so that no other client judges their owner dead. A commit joins before
// its first prewrite, and leaves when its outcome is known or given up. Thread-safe.
class LockKeeper {
 public:
  explicit LockKeeper(Environment* env);

  // The transaction's primary lock is refreshed until this is destroyed. `writes` must outlive it.
  class Membership {
   public:
    Membership(LockKeeper* keeper, const Writes& writes);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

   private:
    LockKeeper* const keeper_;
    const Timestamp start_ts_;
  };

 private:
  struct Member {
    const Writes* writes;
    Duration joined;
  };

  void Refresh();

  Environment* const env_;
  Mutex mutex_;
  std::map<Timestamp, Member> members_ ABSL_GUARDED_BY(mutex_);
  Periodic task_;  // last: its task uses the rest
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_BACKGROUND_H_
