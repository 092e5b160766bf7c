// SessionBook: which sessions there are, what each reports, leads and has claimed. The state of a coordinator that keeps it
// in memory, by itself: who opens sessions and who ends them is decided elsewhere.
//
// ENDING    When a session ends, its leaderships, its claims and its oldest snapshot end with it.
// STRANGERS A session that does not exist here can't lead or claim: kFailedPrecondition. Releasing for it is no error,
//           as nothing is held.
// CLAIMS    Are the session's, not the thread's: claiming a row that the session already has succeeds.

#ifndef PERCOLATOR_COORD_SESSION_BOOK_H_
#define PERCOLATOR_COORD_SESSION_BOOK_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/timestamp.h"
#include "src/base/mutex.h"

namespace percolator {

class SessionBook {
 public:
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

  absl::Status CheckExists(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  // The sessions that exist, and the oldest snapshot each reports; zero: none.
  absl::flat_hash_map<SessionId, Timestamp> sessions_ ABSL_GUARDED_BY(mutex_);
  // Both name only sessions that exist.
  std::map<std::string, SessionId, std::less<>> leaders_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TableRow, SessionId> claims_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_SESSION_BOOK_H_
