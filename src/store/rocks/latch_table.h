// Row latches: what makes a conditional row mutation one atomic step.
//
// A row's latch is one of a fixed number of stripes, chosen by hash; two rows may share one, which costs
// waiting and never correctness. A writer holds the latches of its rows from the first look at a condition
// until the write is in RocksDB. Stripes are taken in ascending order, so writers of several rows can't
// deadlock. Who waits for a latch gets it after a bounded number of others.
//
// Readers do not take latches: one fsync would make them wait for milliseconds. Each stripe has a count instead, whose
// lowest bits say what is under way:
//
//   writing  a write of Mutate. A reader that finds the count without it and unchanged around what it read has seen no
//            write half done (StableSince); else it reads again under a RocksDB snapshot.
//   closed   a write of MutateTogether, whose timestamp may have been drawn already: a reader that might have to see it
//            waits (WaitUntilOpen). If the write fails the stripe stays so when the latch is let go.
//
// A stripe is one word: held, waited for, writing, closed, and the count of writes that have ended. Taking and letting go
// of a latch that nobody waits for changes the word and no more. Who has to wait does so in one of a few lots.

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

  // The count to give to StableSince, and what is under way.
  uint64_t Count(uint32_t stripe) const { return CountIn(words_[stripe].load(std::memory_order_seq_cst)); }
  static bool IsClosed(uint64_t count) { return (count & kClosed) != 0; }
  static bool IsQuiet(uint64_t count) { return (count & (kWriting | kClosed)) == 0; }

  // Whether no write began or ended under the stripe since Count returned `count`.
  bool StableSince(uint32_t stripe, uint64_t count) const {
    // An addition of zero, not a load: it can't move before the reads it judges, and it sees the newest
    // count.
    return CountIn(words_[stripe].fetch_add(0, std::memory_order_acq_rel)) == count;
  }

  // Waits until whoever has closed the stripe is done with it. False: it stays closed.
  bool WaitUntilOpen(uint32_t stripe);

  // Waits until everybody who holds a latch at this moment has let it go.
  void PassThrough();

  // Holds a set of stripes, until destroyed or told otherwise.
  class Guard {
   public:
    Guard(LatchTable* table, Stripes stripes);
    ~Guard() { Release(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    // Lets the latches go. Any thread may do that.
    void Release();

    // Around the change itself: readers that overlap it will notice.
    void BeginWrite() { Add(kWriting); }
    void EndWrite() { Add(kEnded - kWriting); }

    // The same, and who comes meanwhile waits.
    void Close() { Add(kClosed); }
    void Open() { Add(kEnded - kClosed); }

   private:
    void Add(uint64_t bits);

    LatchTable* const table_;
    Stripes stripes_;  // ascending, without repetitions
  };

 private:
  static constexpr uint64_t kHeld = 1;
  static constexpr uint64_t kAwaited = 2;  // somebody waits in the lot
  static constexpr uint64_t kWriting = 4;
  static constexpr uint64_t kClosed = 8;
  static constexpr uint64_t kEnded = 16;  // one write more has ended

  static uint64_t CountIn(uint64_t word) { return word & ~(kHeld | kAwaited); }

  // One who waits: for the latch, or only for the stripe to be opened.
  struct Waiter {
    uint32_t stripe;
    bool wants_latch;
    bool woken = false;
    bool granted = false;  // has got the latch
    int turns_lost = 0;
    CondVar wake;
  };
  struct alignas(64) Lot {
    Mutex mutex;
    std::vector<Waiter*> waiters ABSL_GUARDED_BY(mutex);  // in the order they came
  };
  static constexpr uint32_t kLots = 64;
  // After so many turns lost to others who came later, a waiter is handed the latch.
  static constexpr int kPatience = 2;

  void Take(uint32_t stripe) {
    uint64_t word = words_[stripe].load(std::memory_order_relaxed);
    if ((word & kHeld) != 0 || !words_[stripe].compare_exchange_strong(word, word | kHeld, std::memory_order_acquire)) {
      WaitAndTake(stripe);
    }
  }
  void LetGo(uint32_t stripe) {
    uint64_t word = words_[stripe].load(std::memory_order_relaxed);
    if ((word & kAwaited) != 0 ||
        !words_[stripe].compare_exchange_strong(word, word & ~kHeld, std::memory_order_release)) {
      LetGoAndWake(stripe);
    }
  }
  void WaitAndTake(uint32_t stripe);
  void LetGoAndWake(uint32_t stripe);
  // Marks the stripe as awaited. False: it is not held any more.
  bool Await(uint32_t stripe);
  void Sleep(Lot* lot, Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lot->mutex);
  static void Leave(Lot* lot, const Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lot->mutex);

  const std::unique_ptr<std::atomic<uint64_t>[]> words_;
  std::array<Lot, kLots> lots_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_LATCH_TABLE_H_
