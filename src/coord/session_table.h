// SessionTable: which sessions there are, what each reports, leads and has claimed. The state of a coordinator that keeps it
// in memory, by itself: who opens sessions and who ends them is decided elsewhere.
//
// ENDING    When a session ends, its leaderships, its claims and its oldest snapshot end with it.
// STRANGERS A session that does not exist here can't lead or claim: kFailedPrecondition. Releasing for it is no error,
//           as nothing is held.
// CLAIMS    Are the session's, not the thread's: claiming a row that the session already has succeeds.
// LIMITS    What a session holds is bounded, because strangers may have opened it. A claim too many is granted and not
//           remembered, since claims are advice; a role too many is kResourceExhausted.

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
  static constexpr size_t kMaxRoles = 100;                 // of a session
  static constexpr size_t kMaxClaims = 10'000;             // of a session
  static constexpr size_t kClaimBytes = size_t{64} << 20;  // of all claims: their names

  // Begins the session, if it does not exist, and notes the oldest snapshot it reports; zero: none.
  void Report(SessionId session, Timestamp oldest);
  void End(SessionId session);

  bool Exists(SessionId session) const;
  // The smallest reported; Infinity if there is none.
  Timestamp OldestSnapshot() const;

  absl::StatusOr<bool> Campaign(std::string_view role, SessionId session);
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, SessionId session);
  void Release(std::string_view table, std::string_view row, SessionId session);

 private:
  using TableRow = std::pair<std::string, std::string>;
  struct Entry {
    Timestamp oldest;  // the oldest snapshot it reports; zero: none
    size_t roles = 0;
    size_t claims = 0;
  };

  absl::StatusOr<Entry*> Find(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  // The sessions that exist.
  absl::flat_hash_map<SessionId, Entry> sessions_ ABSL_GUARDED_BY(mutex_);
  // Both name only sessions that exist.
  std::map<std::string, SessionId, std::less<>> leaders_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TableRow, SessionId> claims_ ABSL_GUARDED_BY(mutex_);
  size_t claim_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_SESSION_TABLE_H_
