// UnsentAnswers: the answers of a server that clients have not taken yet.
//
// A client that asks and does not read keeps its answers in the memory of the server. So there is a limit for one
// connection and one for all. Beyond it a single answer is refused with kUnavailable, and a stream waits before it makes
// its next page, without a thread. When the limit for all is reached, calls of which a client has taken nothing for
// kStall are cancelled: clients that read get on.

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
  // Answers up to this are not counted: what gRPC itself needs for a call is more.
  static constexpr size_t kNotCounted = 1 << 10;
  // Of answers up to kSmall there may be a quarter more than the limit for all: who asks for little is served while others
  // hold as much as they may.
  static constexpr size_t kSmall = 64 << 10;

  UnsentAnswers(size_t limit, size_t limit_per_connection) : limit_(limit), connection_limit_(limit_per_connection) {}

  // The answers of one call. Not thread-safe, and neither are the methods below for one call.
  class Call {
   public:
    // `context` must live until End, or the end of this.
    Call(UnsentAnswers* unsent, grpc::CallbackServerContext* context) : unsent_(unsent), context_(context) {}
    ~Call() { End(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Counts so many bytes more. kUnavailable: they would be too many, and are not counted.
    absl::Status TryAdd(size_t bytes);
    // The same, whatever the limit.
    void Add(size_t bytes);
    // So many of them were taken by the client.
    void Sent(size_t bytes);
    void End();

    // False: there is room, or the call is over. True: calls `task`, once, when there may be room.
    bool WaitForRoom(std::function<void()> task);
    // The task will not be called. False: it was, or is being called. May be called by any thread.
    bool StopWaiting();

   private:
    friend class UnsentAnswers;
    struct Entry;

    void Register();

    UnsentAnswers* const unsent_;
    grpc::CallbackServerContext* const context_;
    std::shared_ptr<Entry> entry_;  // null: nothing was counted
  };

  // Cancels what stands still, if others wait for it. To be called about once a second.
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
  // Takes the task of one that waits and now has room; empty: there is none.
  std::function<void()> NextTask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_;
  const size_t connection_limit_;
  Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;  // somebody was refused or waits since the last CancelStalled
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the ones that stand still for the longest time first
  std::list<std::shared_ptr<Call::Entry>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_UNSENT_H_
