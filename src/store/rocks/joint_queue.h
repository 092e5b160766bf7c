// Brings joint mutations together: those that wait while one is under way go next, as one group.
//
// A write costs about the same for one transaction as for many: one turn of RocksDB's writers, one record in the log, one
// fsync, one request to the oracle. So one thread at a time, the leader, applies joint mutations, its own and those of all
// who came meanwhile; they wait and find theirs done. Whoever comes when there is no leader becomes the leader, so a lone
// caller waits for nobody.
//
// At most one group is under way at any time: so whoever wants to see every joint mutation that began before now has one
// thing to wait for (WaitForGroup).
//
// THREADS  All of it may be called from any thread.

#ifndef PERCOLATOR_STORE_ROCKS_JOINT_QUEUE_H_
#define PERCOLATOR_STORE_ROCKS_JOINT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "percolator/oracle.h"
#include "src/base/mutex.h"

namespace percolator {

class JointQueue {
 public:
  // More would make those in front wait for those behind.
  static constexpr size_t kGroupRequests = 128;
  static constexpr size_t kGroupBytes = 1 << 20;

  // What is known of a joint mutation here. Lives with its caller until Run returns.
  struct Request {
    Oracle* oracle = nullptr;
    size_t bytes = 0;

   private:
    friend class JointQueue;
    bool done = false;
    CondVar wake;
  };
  using Group = std::vector<Request*>;

  // `apply` is given groups of requests with the same oracle, one after the other.
  explicit JointQueue(std::function<void(const Group&)> apply);
  JointQueue(const JointQueue&) = delete;
  JointQueue& operator=(const JointQueue&) = delete;

  // Returns when the request was applied, by this thread or another.
  void Run(Request* request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the group that is under way at this moment, if any, is done.
  void WaitForGroup() ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests that are not in a group yet.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Lead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(const Group&)> apply_;

  mutable Mutex mutex_;
  CondVar group_done_;
  bool leading_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t groups_done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Request*> waiting_ ABSL_GUARDED_BY(mutex_);

  Group group_;  // the leader's
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_JOINT_QUEUE_H_
