// SPDX-License-Identifier: Apache-2.0

// The oracle of one process: issues timestamps from memory, below a bound on disk.
//
// O1  Timestamps are unique and increasing: `next_` only grows, and starts above every timestamp that any oracle on the same
//     file has issued.
// O2  Every issued timestamp is below the bound in the file: a higher bound is on disk first.
// O3  A new oracle starts at the bound in the file.
//
// A timestamp is max(last + 1, microseconds since 2025-01-01 UTC). The oracle raises the bound by `window_micros`, and so
// writes the file about once in that time. A restart moves timestamps ahead of the clock by at most `window_micros`.

#ifndef PERCOLATOR_ORACLE_LOCAL_ORACLE_H_
#define PERCOLATOR_ORACLE_LOCAL_ORACLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/oracle/bound_file.h"
#include "src/oracle/next_timestamps.h"

namespace percolator {

struct LocalOracleOptions {
  uint64_t window_micros = 3'000'000;
  Clock* clock = Clock::Real();
};

class LocalOracle : public Oracle {
 public:
  static constexpr uint64_t kLast = kLastTimestamp;

  // Continues from the file. Returns NotFound if the file does not exist.
  static absl::StatusOr<std::unique_ptr<LocalOracle>> Open(const std::string& path,
                                                           const LocalOracleOptions& options = {});
  // Creates the file and starts above `after`: for a new store, or one whose largest timestamp is known. Returns
  // AlreadyExists if the file exists.
  static absl::StatusOr<std::unique_ptr<LocalOracle>> Create(const std::string& path, Timestamp after,
                                                             const LocalOracleOptions& options = {});

  // Returns DataLoss if the file cannot be written, and then FailedPrecondition from every later call that needs a higher
  // bound. Returns OutOfRange if the last timestamp is reached. Returns FailedPrecondition in a child of fork(), which would
  // issue the timestamps of its parent and lower its bound. Thread-safe.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;
  // Returns nullopt if the bound has to be raised, or another thread holds the mutex and may be raising it.
  std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t count) override;

 private:
  LocalOracle(std::unique_ptr<BoundFile> file, const LocalOracleOptions& options);

  std::optional<absl::StatusOr<Timestamp>> NextBelowBound(uint32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ForkWatch forks_;
  const LocalOracleOptions options_;

  Mutex mutex_;
  const std::unique_ptr<BoundFile> file_ ABSL_PT_GUARDED_BY(mutex_);
  NextTimestamps timestamps_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_);  // no timestamp below it is issued any more
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_LOCAL_ORACLE_H_
