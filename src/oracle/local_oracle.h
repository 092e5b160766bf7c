// The oracle of one process: timestamps from memory, below a bound that is on disk.
//
// O1  Unique and increasing: `next_` only grows while this oracle lives, and starts above everything that any oracle on
//     the same file has handed out.
// O2  Nothing is handed out at or above the bound in the file; the bound is raised, and on disk, before.
// O3  A new oracle starts at the bound in the file.
//
// Values are max(last + 1, microseconds since 2025-01-01 UTC). The bound is raised by `window` at a time, so that many
// seconds at most a restart jumps ahead of the clock, and so often the file is written.

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

  // Goes on from the file. kNotFound: there is none.
  static absl::StatusOr<std::unique_ptr<LocalOracle>> Open(const std::string& path,
                                                           const LocalOracleOptions& options = {});
  // Begins anew, above `after`: for data that is new, or whose largest timestamp is known. kAlreadyExists: there is a
  // file.
  static absl::StatusOr<std::unique_ptr<LocalOracle>> Create(const std::string& path, Timestamp after,
                                                             const LocalOracleOptions& options = {});

  // kDataLoss: the file can't be written; from then on kFailedPrecondition. kOutOfRange: the last timestamp is reached.
  // kFailedPrecondition in a child of fork(), which would hand out the parent's timestamps and lower its bound.
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;
  // Nothing, if the bound has to be raised, or somebody else is just here, who may be doing that.
  std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t count) override;

 private:
  LocalOracle(std::unique_ptr<BoundFile> file, const LocalOracleOptions& options);

  std::optional<absl::StatusOr<Timestamp>> NextBelowBound(uint32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ForkWatch forks_;
  const LocalOracleOptions options_;

  Mutex mutex_;
  const std::unique_ptr<BoundFile> file_ ABSL_PT_GUARDED_BY(mutex_);
  NextTimestamps timestamps_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_);  // everything below has been handed out, or never will be
};

}  // namespace percolator

#endif  // PERCOLATOR_ORACLE_LOCAL_ORACLE_H_
