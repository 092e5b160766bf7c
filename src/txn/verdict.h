// SPDX-License-Identifier: Apache-2.0

// The verdict on a transaction, as its primary says, and a cache of verdicts.

#ifndef PERCOLATOR_TXN_VERDICT_H_
#define PERCOLATOR_TXN_VERDICT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "percolator/spi/mutex.h"
#include "percolator/timestamp.h"
#include "src/base/check.h"

namespace percolator {

struct Verdict {
  enum class Kind : uint8_t { kPending, kCommitted, kRolledBack };
  Kind kind = Kind::kPending;
  Timestamp commit_ts;  // of kCommitted

  static Verdict Pending() { return {}; }
  static Verdict Committed(Timestamp ts) { return {Kind::kCommitted, ts}; }
  static Verdict RolledBack() { return {Kind::kRolledBack, {}}; }

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Remembers definite verdicts (K3: only those never change, T1), so that many locks of one dead transaction cost one
// read of its primary. Thread-safe.
class VerdictCache {
 public:
  std::optional<Verdict> Find(Timestamp start_ts) const {
    MutexLock lock(&mutex_);
    const Entry& entry = entries_[IndexOf(start_ts)];
    return entry.start_ts == start_ts ? std::optional(entry.verdict) : std::nullopt;
  }

  // REQUIRES: the verdict is definite.
  void Remember(Timestamp start_ts, const Verdict& verdict) {
    PERCOLATOR_DCHECK(verdict.kind != Verdict::Kind::kPending);
    MutexLock lock(&mutex_);
    entries_[IndexOf(start_ts)] = {start_ts, verdict};
  }

 private:
  struct Entry {
    Timestamp start_ts;
    Verdict verdict;
  };
  static constexpr size_t kEntries = 1024;

  static size_t IndexOf(Timestamp ts) { return (ts.value() * 0x9E3779B97F4A7C15) >> 54; }

  mutable Mutex mutex_;
  std::array<Entry, kEntries> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_VERDICT_H_
