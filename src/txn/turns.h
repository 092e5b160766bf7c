// SPDX-License-Identifier: Apache-2.0

// Turns: transactions that conflict at a cell go one after the other there.
//
// The store settles conflicts, and a transaction that loses runs again. On a hot cell that alone is unfair: the thread that
// has just committed is ready to commit again while the threads that lost back off, so a few threads do all the commits. A
// transaction that lost at a cell therefore waits for a turn there. While one transaction has the turn, others that are about
// to commit that cell are held back, and wait for a turn themselves.
//
// A turn is granted when nothing has been committed to the cell for a moment, and otherwise once in kSlice. In between,
// transactions that do not wait commit freely. So a thread that commits again and again runs at full speed for a slice of
// time before it joins the queue, and a hot cell does not cost a switch of threads for each commit.
//
// Turns only decide who goes first. They end after a bounded time and are not known to other processes, and the rules of the
// protocol do not depend on them.
//
// Thread-safe.

#ifndef PERCOLATOR_TXN_TURNS_H_
#define PERCOLATOR_TXN_TURNS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/types.h"
#include "src/base/retry.h"
#include "src/txn/write_buffer.h"

namespace percolator {

class Turns {
  struct Queue;

 public:
  // How long transactions that do not wait may commit a cell before the next turn is granted.
  static constexpr Duration kSlice = std::chrono::milliseconds(1);
  // Maximum time for which a turn holds others back.
  static constexpr Duration kMaxTurn = std::chrono::milliseconds(100);

  // Waiting ends early when `closed` becomes true. Both must outlive this.
  Turns(Runtime* runtime, const std::atomic<bool>* closed) : runtime_(runtime), closed_(closed) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // The turn of one transaction at one cell, or none yet. Used by one thread at a time.
  class Turn {
   public:
    explicit Turn(Turns* turns) : turns_(turns) {}
    ~Turn() { End(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Waits for the turn at the cell. Returns without one if the deadline passes. The turn holds others back for twice as long
    // as the transaction runs, `run`; at least for kSlice and at most for kMaxTurn. REQUIRES: not granted().
    void Wait(const CellName& cell, Duration run, const Deadline& deadline);
    // Gives the turn back. Does nothing if there is none.
    void End();
    bool granted() const { return queue_ != nullptr; }

   private:
    Turns* const turns_;
    Queue* queue_ = nullptr;
  };

  // Returns whether a transaction has a turn or waits for one. Otherwise the two functions below have nothing to do.
  bool busy() const { return busy_.load(std::memory_order_relaxed); }
  // Returns one of the cells at which another transaction has the turn, if there is one.
  std::optional<CellName> FindTaken(const WriteBuffer::Cells& cells);
  // Says that the cells are about to be committed.
  void NoteCommit(const WriteBuffer::Cells& cells);

 private:
  // While turns of others are granted, a waiting transaction looks this often whether the cell is still being committed.
  static constexpr Duration kLook = std::chrono::microseconds(50);
  static constexpr Duration kLookBehind = std::chrono::milliseconds(100);

  // A cell where transactions have conflicted. Exists while one has the turn there, or waits.
  struct Queue {
    const CellName* cell = nullptr;
    std::deque<WaitQueue*> waiting;  // the transactions in their order, each with its own
    int turns = 0;  // granted and not ended, though maybe past the time for which they hold others back
    const Turn* holder = nullptr;
    Duration holds_until{0};
    Duration granted_at{0};
    uint64_t commits = 0;
  };

  // Calls visit(queue) for the queues of these cells, until it returns false.
  template <typename Visit>
  void VisitQueues(const WriteBuffer::Cells& cells, const Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Queue* Join(const CellName& cell, WaitQueue* own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Queue* queue, WaitQueue* own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the first that waits, or removes the queue if it is not used.
  void PassOn(Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Runtime* const runtime_;
  const std::atomic<bool>* const closed_;
  std::atomic<bool> busy_{false};  // there are queues
  Mutex mutex_;
  std::map<CellName, Queue> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TURNS_H_
