// What a cluster does beside its transactions.

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

// Commits secondaries after Commit has returned, many transactions' in one batch. What it does not get done, for whatever
// reason, readers will: the transaction is committed.
class SecondaryQueue {
 public:
  // At most `capacity` row mutations wait.
  SecondaryQueue(Environment* env, size_t capacity);
  // Finishes what waits, as far as the store can be reached within some seconds.
  ~SecondaryQueue();

  // False: the queue is full, and nothing was taken.
  bool Add(std::vector<RowMutation>* mutations);
  // Waits until all that was added before is done.
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
  std::optional<Deadline> drain_by_ ABSL_GUARDED_BY(mutex_);  // once stopping
  std::deque<RowMutation> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;  // so far, and of these, in their order,
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Refreshes the primary locks of commits that take long, so that nobody takes their owner for dead. A commit
// joins before its first prewrite, and leaves when its fate is known or given up.
class LockKeeper {
 public:
  explicit LockKeeper(Environment* env);

  // While it lives, the transaction's primary lock is refreshed. `writes` must outlive it.
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
