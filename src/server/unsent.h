// SPDX-License-Identifier: Apache-2.0

// UnsentAnswers: limits the answers of a server that clients have not read yet.
//
// The unread answers of a client take memory of the server, so there is a limit per connection and one for all connections.
// Beyond a limit, a unary call fails with Unavailable, and a stream waits, without a thread, before it makes its next page.
// While the limit for all connections is reached, calls without progress for kStall are cancelled, so that clients that read
// make progress.

#ifndef PERCOLATOR_SERVER_UNSENT_H_
#define PERCOLATOR_SERVER_UNSENT_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"

namespace percolator {

class UnsentAnswers {
 public:
  static constexpr std::chrono::milliseconds kStall{2000};
  // Answers up to this size are not counted. gRPC itself needs more for a call.
  static constexpr size_t kNotCounted = 1 << 10;
  // Answers up to this size may exceed the limit for all connections by a quarter, so that small requests are served while
  // large answers use up the limit.
  static constexpr size_t kSmall = 64 << 10;

  UnsentAnswers(size_t limit, size_t limit_per_connection) : limit_(limit), connection_limit_(limit_per_connection) {}

  // The unread answers of one call. Used by one thread at a time, except StopWaiting.
  class Call {
   public:
    // REQUIRES: `context` lives until End, or until this object is destroyed.
    Call(UnsentAnswers* unsent, grpc::CallbackServerContext* context) : unsent_(unsent), context_(context) {}
    ~Call() { End(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Adds `bytes` unread bytes. Returns Unavailable, and adds none, if they would exceed a limit.
    absl::Status TryAdd(size_t bytes);
    // Adds `bytes` without checking the limits.
    void Add(size_t bytes);
    // Removes `bytes`, which the client has read.
    void Sent(size_t bytes);
    void End();

    // Returns false if there is room. Otherwise returns true, and calls `task` once when there may be room.
    bool WaitForRoom(std::function<void()> task);
    // Returns true if the task is dropped, and false if it was called or is being called. Called by any thread.
    bool StopWaiting();

   private:
    friend class UnsentAnswers;
    struct Entry;

    void Register();

    UnsentAnswers* const unsent_;
    grpc::CallbackServerContext* const context_;
    std::shared_ptr<Entry> entry_;  // null until something is counted
  };

  // Cancels stalled calls if other calls wait for room. The acceptor calls it about once a second.
  void CancelStalled();

 private:
  struct Connection {
    size_t bytes = 0;
    size_t calls = 0;
  };
  using Entries = std::list<std::shared_ptr<Call::Entry>>;

  void AddLocked(Call::Entry* entry, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SubtractLocked(Call::Entry* entry, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom(const Call::Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the task of a waiting call that has room now. Returns an empty function if there is none.
  std::function<void()> NextTask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_;
  const size_t connection_limit_;
  Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;  // a call was refused or had to wait since the last CancelStalled
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // sorted by their last progress, the oldest first
  std::list<std::shared_ptr<Call::Entry>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_UNSENT_H_
