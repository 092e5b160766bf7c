// SPDX-License-Identifier: Apache-2.0

// Row latches: they make a conditional row mutation one atomic step.
//
// A row's latch is one of a fixed number of stripes, chosen by hash. Two rows may share one, which costs waiting, and
// nothing else. A writer holds the latches of its rows from the first evaluation of a condition until the write is in
// RocksDB. It takes stripes in ascending order, so writers of several rows cannot deadlock. A waiting thread gets the
// latch after a bounded number of other threads.
//
// Readers do not take latches: one fsync would make them wait for milliseconds. Each stripe has a count instead, whose
// lowest bits say what is under way:
//
//   writing  a write of Mutate. A reader has seen no write half done if the count is without this bit and is the same after
//            the read (StableSince); otherwise it reads again under a RocksDB snapshot.
//   closed   a write of MutateTogether, whose timestamp may have been drawn already: a reader that might have to see it
//            waits (WaitUntilOpen). If the write fails, the stripe stays closed when the latch is released.
//
// A stripe is one word: held, waited for, writing, closed, and the count of writes that have ended. If no thread waits,
// taking and releasing a latch only changes the word. A thread that has to wait does so in one of a few lots.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_
#define PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "percolator/spi/mutex.h"

namespace percolator {

class LatchTable {
 public:
  // A million random pairs of rows would meet in about 60 of them.
  static constexpr uint32_t kStripes = 1 << 14;

  using Stripes = absl::InlinedVector<uint32_t, 4>;

  LatchTable() : words_(std::make_unique<std::atomic<uint64_t>[]>(kStripes)) {}
  LatchTable(const LatchTable&) = delete;
  LatchTable& operator=(const LatchTable&) = delete;

  static uint32_t StripeOf(std::string_view row_prefix) {
    return static_cast<uint32_t>(absl::HashOf(row_prefix)) & (kStripes - 1);
  }
  static Stripes EveryStripe();

  // Returns the count for StableSince. It says what is under way.
  uint64_t Count(uint32_t stripe) const { return CountIn(words_[stripe].load(std::memory_order_seq_cst)); }
  static bool IsClosed(uint64_t count) { return (count & kClosed) != 0; }
  static bool IsQuiet(uint64_t count) { return (count & (kWriting | kClosed)) == 0; }

  // Returns whether a writer holds the latch at this moment, so that another one would wait.
  bool IsHeld(uint32_t stripe) const { return (words_[stripe].load(std::memory_order_relaxed) & kHeld) != 0; }

  // Returns whether no write began or ended under the stripe since Count returned `count`.
  bool StableSince(uint32_t stripe, uint64_t count) const {
    // An addition of zero, not a load: it cannot move before the reads that it judges, and it sees the newest count.
    return CountIn(words_[stripe].fetch_add(0, std::memory_order_acq_rel)) == count;
  }

  // If the stripe is closed, waits until that write has ended. Returns false if the stripe stays closed.
  bool WaitUntilOpen(uint32_t stripe);

  // Waits until every latch that is held now has been released.
  void PassThrough();

  // Holds a set of stripes until Release or destruction.
  class Guard {
   public:
    Guard(LatchTable* table, Stripes stripes);
    ~Guard() { Release(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    // Releases the latches. Any thread may call it.
    void Release();

    // Called around the change itself. A reader that overlaps it sees the change of the count.
    void BeginWrite() { Add(kWriting); }
    void EndWrite() { Add(kEnded - kWriting); }

    // The same; readers that come in between wait.
    void Close() { Add(kClosed); }
    void Open() { Add(kEnded - kClosed); }

   private:
    void Add(uint64_t bits);

    LatchTable* const table_;
    Stripes stripes_;  // ascending, without repetitions
  };

 private:
  static constexpr uint64_t kHeld = 1;
  static constexpr uint64_t kAwaited = 2;  // a thread waits in the lot
  static constexpr uint64_t kWriting = 4;
  static constexpr uint64_t kClosed = 8;
  static constexpr uint64_t kEnded = 16;  // added when a write has ended

  static uint64_t CountIn(uint64_t word) { return word & ~(kHeld | kAwaited); }

  // A thread that waits for the latch, or only for the stripe to be opened.
  struct Waiter {
    uint32_t stripe;
    bool wants_latch;
    bool woken = false;
    bool granted = false;  // has the latch
    int turns_lost = 0;
    CondVar wake;
  };
  struct alignas(64) Lot {
    Mutex mutex;
    std::vector<Waiter*> waiters ABSL_GUARDED_BY(mutex);  // in order of arrival
  };
  static constexpr uint32_t kLots = 64;
  // A waiter that lost this many turns to later threads is handed the latch.
  static constexpr int kMaxTurnsLost = 2;

  void Take(uint32_t stripe) {
    uint64_t word = words_[stripe].load(std::memory_order_relaxed);
    if ((word & kHeld) != 0 || !words_[stripe].compare_exchange_strong(word, word | kHeld, std::memory_order_acquire)) {
      WaitAndTake(stripe);
    }
  }
  void Release(uint32_t stripe) {
    uint64_t word = words_[stripe].load(std::memory_order_relaxed);
    if ((word & kAwaited) != 0 ||
        !words_[stripe].compare_exchange_strong(word, word & ~kHeld, std::memory_order_release)) {
      ReleaseAndWake(stripe);
    }
  }
  void WaitAndTake(uint32_t stripe);
  void ReleaseAndWake(uint32_t stripe);
  // Marks the stripe as awaited. Returns false if it is no longer held.
  bool Await(uint32_t stripe);
  void Sleep(Lot* lot, Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lot->mutex);
  static void Leave(Lot* lot, const Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lot->mutex);

  const std::unique_ptr<std::atomic<uint64_t>[]> words_;
  std::array<Lot, kLots> lots_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_
