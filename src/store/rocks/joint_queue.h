// Brings joint mutations together: those that wait while one is under way go next, as one group.
//
// A write costs about the same for one transaction as for many: one turn of RocksDB's writers, one record in the log, one
// fsync, one request to the oracle. So one thread at a time, the leader, applies joint mutations, its own and those of all
// who came meanwhile; they wait and find theirs done. Whoever comes when there is no leader becomes the leader, so a lone
// caller waits for nobody. At the end of a group, the first who waits is woken before those whose requests are done: the
// next fsync is under way while they wake, which takes as long as an fsync when they are many.
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

#include "absl/container/inlined_vector.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"

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
    enum class Told { kNothing, kTryToLead, kDone };

    void Tell(Told what) ABSL_LOCKS_EXCLUDED(mutex);
    // Waits to be told something, once.
    Told Wait() ABSL_LOCKS_EXCLUDED(mutex);

    Mutex mutex;  // its own, so that those who wake do not wait for each other
    CondVar wake;
    Told told ABSL_GUARDED_BY(mutex) = Told::kNothing;
  };
  using Group = absl::InlinedVector<Request*, 8>;

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
  // The requests that this thread is to apply as the leader; none if another thread leads, or nobody waits.
  Group TryToLead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lead(const Group& group, const Request* own) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void(const Group&)> apply_;

  mutable Mutex mutex_;
  CondVar group_done_;
  bool led_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t groups_done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Request*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_JOINT_QUEUE_H_
