// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/local_oracle.h"

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"

namespace percolator {

absl::StatusOr<std::unique_ptr<LocalOracle>> LocalOracle::Open(const std::string& path,
                                                               const LocalOracleOptions& options) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<BoundFile> file, BoundFile::Open(path));
  return std::unique_ptr<LocalOracle>(new LocalOracle(std::move(file), options));
}

absl::StatusOr<std::unique_ptr<LocalOracle>> LocalOracle::Create(const std::string& path, Timestamp after,
                                                                 const LocalOracleOptions& options) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<BoundFile> file, BoundFile::Create(path, after.Next().value()));
  return std::unique_ptr<LocalOracle>(new LocalOracle(std::move(file), options));
}

// O3.
LocalOracle::LocalOracle(std::unique_ptr<BoundFile> file, const LocalOracleOptions& options)
    : options_(options), file_(std::move(file)), timestamps_(options.clock), next_(file_->bound()) {}

absl::StatusOr<Timestamp> LocalOracle::GetTimestamps(uint32_t count) {
  if (forks_.forked()) {
    return absl::FailedPreconditionError(
        "cannot issue timestamps: the oracle was opened by the process that forked this one; open it after fork()");
  }
  MutexLock lock(&mutex_);
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t first, timestamps_.First(next_, count));
  const uint64_t end = first + count;
  if (end > file_->bound()) {
    // O2: on disk first.
    PERCOLATOR_RETURN_IF_ERROR(file_->Raise(std::min(end + options_.window_micros, kLast)));
  }
  next_ = end;
  return Timestamp(first);
}

std::optional<absl::StatusOr<Timestamp>> LocalOracle::TryGetTimestamps(uint32_t count) {
  if (forks_.forked() || !mutex_.TryLock()) return std::nullopt;
  std::optional<absl::StatusOr<Timestamp>> first = NextBelowBound(count);
  mutex_.Unlock();
  return first;
}

std::optional<absl::StatusOr<Timestamp>> LocalOracle::NextBelowBound(uint32_t count) {
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t first, timestamps_.First(next_, count));
  const uint64_t end = first + count;
  if (end > file_->bound()) return std::nullopt;
  next_ = end;
  return Timestamp(first);
}

}  // namespace percolator
