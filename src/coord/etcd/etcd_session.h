// A session on etcd: a lease of which the number is the session's id, kept alive by a thread, and a key on it.

#ifndef PERCOLATOR_COORD_ETCD_ETCD_SESSION_H_
#define PERCOLATOR_COORD_ETCD_ETCD_SESSION_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/etcd/etcd_client.h"
#include "src/etcd/etcd_options.h"

namespace percolator {

// The key of a session; the key's value is the timestamp that it reports.
std::string SessionKey(std::string_view prefix, SessionId id);
std::string SessionPrefix(std::string_view prefix);

class EtcdSession final : public Session {
 public:
  // The client must outlive the session. Errors are those of etcd.
  static absl::StatusOr<std::unique_ptr<EtcdSession>> Open(EtcdClient* client, const EtcdOptions& options,
                                                           SessionId id);
  ~EtcdSession() override;
  EtcdSession(const EtcdSession&) = delete;
  EtcdSession& operator=(const EtcdSession&) = delete;

  SessionId id() const override { return id_; }
  // Counted from before the last renewal that succeeded was sent: false at the latest when etcd may have ended the lease.
  bool alive() const override;
  // An error says that others may not know it yet; it is told them again with every renewal until they do.
  absl::Status ReportOldestSnapshot(Timestamp oldest) override;

 private:
  EtcdSession(EtcdClient* client, const EtcdOptions& options, SessionId id);
  int64_t lease() const { return static_cast<int64_t>(id_); }

  // The thread's.
  void Run();
  absl::Status Renew() ABSL_LOCKS_EXCLUDED(talking_);
  // A lease, new or not, and the key on it.
  absl::Status Establish(Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(talking_);
  absl::Status WriteKey(Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(talking_);
  // The lease lasts for `ttl` from the moment `sent` on.
  void NoteLease(uint64_t sent, Duration ttl);

  EtcdClient* const client_;
  const SessionId id_;
  const std::string key_;
  const Duration ttl_;
  const Duration timeout_;        // of what the user waits for
  const Duration renew_timeout_;  // shorter, so that there is time for another try

  // Held while talking to etcd about this session: one at a time.
  Mutex talking_;
  Timestamp oldest_ ABSL_GUARDED_BY(talking_);
  bool is_written_ ABSL_GUARDED_BY(talking_) = false;  // the key says `oldest_`
  int64_t revision_ ABSL_GUARDED_BY(talking_) = 0;     // of the key, as far as known

  std::atomic<uint64_t> alive_until_{0};  // by Clock::BootMicros

  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> ended_;
  std::thread thread_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_SESSION_H_
