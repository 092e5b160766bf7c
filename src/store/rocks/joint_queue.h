// SPDX-License-Identifier: Apache-2.0

// Groups joint mutations: those that arrive while a group is applied form the next group.
//
// A write costs about the same for one transaction as for many: one turn in RocksDB's write queue, one record in the
// log, one fsync, one request to the oracle. So one thread at a time, the leader, applies the joint mutations of all
// threads that have arrived, and the others wait until theirs are done. A thread that arrives when there is no leader
// becomes the leader, so a lone caller does not wait. At the end of a group, the leader wakes the first waiting thread
// before those whose requests are done: waking many threads takes as long as an fsync, and the next fsync runs at that
// time.
//
// At most one group is under way at any time. So a thread that has to see every joint mutation that began before now
// waits for one thing (WaitForGroup).
//
// Thread-safe.

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
  // With larger groups, the first requests would wait for the last.
  static constexpr size_t kGroupRequests = 128;
  static constexpr size_t kGroupBytes = 1 << 20;

  // A joint mutation, as the queue sees it. The caller keeps it until Run returns.
  struct Request {
    Oracle* oracle = nullptr;
    size_t bytes = 0;

   private:
    friend class JointQueue;
    enum class Signal { kNone, kTryToLead, kDone };

    void Send(Signal sent) ABSL_LOCKS_EXCLUDED(mutex);
    // Waits for a signal, and takes it.
    Signal Wait() ABSL_LOCKS_EXCLUDED(mutex);

    Mutex mutex;  // one per request, so that woken threads do not wait for each other
    CondVar wake;
    Signal signal ABSL_GUARDED_BY(mutex) = Signal::kNone;
  };
  using Group = absl::InlinedVector<Request*, 8>;

  // Calls `apply` with groups of requests that have the same oracle, one group at a time.
  explicit JointQueue(std::function<void(const Group&)> apply);
  JointQueue(const JointQueue&) = delete;
  JointQueue& operator=(const JointQueue&) = delete;

  // Returns when this thread or another has applied the request.
  void Run(Request* request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the group that is under way now, if any, is done.
  void WaitForGroup() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of requests that are not in a group yet.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns the requests that this thread has to apply as the leader. Empty if another thread leads or no request
  // waits.
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
