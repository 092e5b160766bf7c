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
  // `age`: how old what is known of the safe point may be at most, by a clock that goes on while the machine sleeps: meanwhile
  // others do not wait.
  SafePointGate(BigtableCatalog* catalog, Duration age, Clock* clock);

  // As it was at most `age` ago.
  absl::StatusOr<Timestamp> Get();

  // Raises it; returns once no process lets a mutation through by what it knew of it before, and what this process let through
  // is done.
  absl::Status Raise(Timestamp ts);

  // A mutation that was let through, while it lives.
  class Passage {
   public:
    Passage() = default;
    Passage(Passage&& other) noexcept;
    Passage& operator=(Passage&&) = delete;
    ~Passage();

   private:
    friend class SafePointGate;
    SafePointGate* gate_ = nullptr;  // null: it sets no lock
    Timestamp lock_;                 // the oldest it sets
  };
  // kOutOfRange: it would set a lock at or below the safe point.
  absl::StatusOr<Passage> Enter(const RowMutation& mutation);

 private:
  void Learn(Timestamp ts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Duration Now() const;
  // Whether what is known was asked for too long before `now`.
  bool IsOld(Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BigtableCatalog* const catalog_;
  const Duration age_;
  Clock* const clock_;
  Runtime* const runtime_;
  Mutex mutex_;
  std::optional<Duration> asked_ ABSL_GUARDED_BY(mutex_);  // when what is known was asked for
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  Timestamp known_ ABSL_GUARDED_BY(mutex_);
  std::multiset<Timestamp> passing_ ABSL_GUARDED_BY(mutex_);  // the oldest locks of mutations under way
  const std::unique_ptr<WaitQueue> passed_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BIGTABLE_SAFE_POINT_H_
