// The coordinator of one process: everything in memory.
//
// It serves the process that holds the store itself (`rocksdb:` and `memory:` addresses), and tests and the simulator,
// where several clusters share one.
//
// SESSIONS  A session lives until it is destroyed; when the process dies, all are gone with the coordinator. Its id is a
//           timestamp of the oracle, so it is never used twice, not even by the coordinator of the next process on the
//           same data (O1). A lock that names a session of an earlier process therefore names a dead one.
// ENDING    When a session ends, its leaderships, its claims and its oldest snapshot end with it.
// STRANGERS A session that does not exist here can't lead or claim: kFailedPrecondition. Releasing for it is no error,
//           as nothing is held.
// CLAIMS    Are the session's, not the thread's: claiming a row that the session already has succeeds.
// HINTS     Are handed to the listener by the thread that sends them, before SendHint returns. Without a listener they
//           are lost. Setting a listener takes the place of the one before, waits for calls of that one under way, and
//           from then on it is not called any more; so it must not be done from within a listener.

#ifndef PERCOLATOR_COORD_LOCAL_COORDINATOR_H_
#define PERCOLATOR_COORD_LOCAL_COORDINATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/oracle.h"
#include "src/base/mutex.h"
#include "src/base/runtime.h"

namespace percolator {

class LocalCoordinator : public Coordinator {
 public:
  // Both must outlive this, and this the sessions it opens.
  explicit LocalCoordinator(Oracle* oracle, Runtime* runtime = Runtime::Real());
  ~LocalCoordinator() override;

  // The oracle's error, if it gives no id.
  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override;
  absl::StatusOr<bool> IsAlive(SessionId session) override;
  absl::StatusOr<Timestamp> OldestSnapshot() override;

  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override;

  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override;
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override;

  void SendHint(const CellName& cell) override;
  void SetHintListener(HintListener listener) override;

 private:
  class LocalSession;
  struct Listening;
  using TableRow = std::pair<std::string, std::string>;

  absl::Status ReportOldestSnapshot(SessionId session, Timestamp oldest);
  void EndSession(SessionId session);
  absl::Status CheckExists(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Oracle* const oracle_;
  Runtime* const runtime_;

  Mutex mutex_;
  // The sessions that exist, and the oldest snapshot each reports; zero: none.
  absl::flat_hash_map<SessionId, Timestamp> sessions_ ABSL_GUARDED_BY(mutex_);
  // Both name only sessions that exist.
  std::map<std::string, SessionId, std::less<>> leaders_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TableRow, SessionId> claims_ ABSL_GUARDED_BY(mutex_);

  // Apart from the rest, because every commit sends hints.
  Mutex hint_mutex_;
  std::shared_ptr<Listening> listening_ ABSL_GUARDED_BY(hint_mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_LOCAL_COORDINATOR_H_
