// SPDX-License-Identifier: Apache-2.0

// SafePointGate: keeps this process from setting locks at or below the safe point, which is in Bigtable's catalog.

#ifndef PERCOLATOR_STORE_BIGTABLE_SAFE_POINT_H_
#define PERCOLATOR_STORE_BIGTABLE_SAFE_POINT_H_

#include <memory>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "src/base/clock.h"
#include "src/store/bigtable/catalog.h"

namespace percolator {

class SafePointGate {
 public:
  // `age`: the maximum age of the cached safe point, by a clock that goes on while the machine sleeps, because other
  // processes do not wait for a sleeping machine.
  SafePointGate(BigtableCatalog* catalog, Duration age, Clock* clock);

  // Returns the safe point as it was at most `age` ago.
  absl::StatusOr<Timestamp> Get();

  // Raises the safe point. Returns when no process passes mutations by the old one any more, and those that this
  // process has passed are done.
  absl::Status Raise(Timestamp ts);

  // A mutation that has passed. It is under way until this is destroyed.
  class Passage {
   public:
    Passage() = default;
    Passage(Passage&& other) noexcept;
    Passage& operator=(Passage&&) = delete;
    ~Passage();

   private:
    friend class SafePointGate;
    SafePointGate* gate_ = nullptr;  // null: the mutation sets no lock
    Timestamp lock_;                 // the oldest lock that it sets
  };
  // Returns OutOfRange if the mutation would set a lock at or below the safe point.
  absl::StatusOr<Passage> Enter(const RowMutation& mutation);

 private:
  void Learn(Timestamp ts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Duration Now() const;
  // Returns whether the cached safe point is too old at `now`.
  bool IsOld(Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BigtableCatalog* const catalog_;
  const Duration age_;
  Clock* const clock_;
  Runtime* const runtime_;
  Mutex mutex_;
  std::optional<Duration> asked_ ABSL_GUARDED_BY(mutex_);  // when the cached one was asked for
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  Timestamp known_ ABSL_GUARDED_BY(mutex_);
  std::multiset<Timestamp> passing_ ABSL_GUARDED_BY(mutex_);  // the oldest locks of mutations under way
  const std::unique_ptr<WaitQueue> passed_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_SAFE_POINT_H_
