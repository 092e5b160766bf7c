// SPDX-License-Identifier: Apache-2.0

// SessionTable: the sessions of a coordinator that keeps them in memory, with their reported snapshots, roles and claims. Its
// user decides when sessions open and end. Thread-safe.
//
// ENDING    When a session ends, its roles, its claims and its oldest snapshot end with it.
// UNKNOWN   For an unknown session, Campaign and Claim return FailedPrecondition, and Release does nothing.
// CLAIMS    A claim belongs to the session, not to a thread: a session may claim a row that it already has.
// LIMITS    The roles and claims of a session are limited, because any client may open one. Claims beyond the limit are granted
//           but not stored, since claims are advisory. Roles beyond the limit fail with ResourceExhausted.

#ifndef PERCOLATOR_COORD_SESSION_TABLE_H_
#define PERCOLATOR_COORD_SESSION_TABLE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/timestamp.h"

namespace percolator {

class SessionTable {
 public:
  static constexpr size_t kMaxRoles = 100;                    // per session
  static constexpr size_t kMaxClaims = 10'000;                // per session
  static constexpr size_t kMaxClaimBytes = size_t{64} << 20;  // the total size of the names of all claimed rows

  // Adds the session if it is unknown, and stores its oldest snapshot; zero means that it has none.
  void Report(SessionId session, Timestamp oldest);
  void End(SessionId session);

  bool Exists(SessionId session) const;
  // Returns the smallest reported snapshot, or Infinity if no session reports one.
  Timestamp OldestSnapshot() const;

  absl::StatusOr<bool> Campaign(std::string_view role, SessionId session);
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, SessionId session);
  void Release(std::string_view table, std::string_view row, SessionId session);

 private:
  using TableRow = std::pair<std::string, std::string>;
  struct Entry {
    Timestamp oldest;  // the reported oldest snapshot, or zero
    size_t roles = 0;
    size_t claims = 0;
  };

  absl::StatusOr<Entry*> Find(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  // The living sessions.
  absl::flat_hash_map<SessionId, Entry> sessions_ ABSL_GUARDED_BY(mutex_);
  // Both maps contain only sessions in `sessions_`.
  std::map<std::string, SessionId, std::less<>> leaders_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TableRow, SessionId> claims_ ABSL_GUARDED_BY(mutex_);
  size_t claim_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_SESSION_TABLE_H_
