// SPDX-License-Identifier: Apache-2.0

// A session on etcd: a lease whose number is the session's id, a thread that renews it, and a key on it.

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

// Returns the key of a session. Its value is the oldest snapshot that the session reports.
std::string SessionKey(std::string_view prefix, SessionId id);
std::string SessionPrefix(std::string_view prefix);

class EtcdSession final : public Session {
 public:
  // Returns the errors of EtcdClient. REQUIRES: `client` outlives the session.
  static absl::StatusOr<std::unique_ptr<EtcdSession>> Open(EtcdClient* client, const EtcdOptions& options,
                                                           SessionId id);
  ~EtcdSession() override;
  EtcdSession(const EtcdSession&) = delete;
  EtcdSession& operator=(const EtcdSession&) = delete;

  SessionId id() const override { return id_; }
  // Returns false from the moment on at which etcd may have ended the lease, counted from before the last successful renewal
  // was sent.
  bool alive() const override;
  // After an error the other processes may not see `oldest` yet; every renewal writes it again until that succeeds.
  absl::Status ReportOldestSnapshot(Timestamp oldest) override;

 private:
  EtcdSession(EtcdClient* client, const EtcdOptions& options, SessionId id);
  int64_t lease() const { return static_cast<int64_t>(id_); }

  // Run and Renew are called by the thread only.
  void Run();
  absl::Status Renew() ABSL_LOCKS_EXCLUDED(talking_);
  // Creates or renews the lease, and writes the key on it.
  absl::Status Establish(Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(talking_);
  absl::Status WriteKey(Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(talking_);
  // Notes that the lease lasts for `ttl` from `sent` on.
  void NoteLease(uint64_t sent, Duration ttl);

  EtcdClient* const client_;
  const SessionId id_;
  const std::string key_;
  const Duration ttl_;
  const Duration timeout_;        // The timeout of requests that the user waits for.
  const Duration renew_timeout_;  // Shorter, to leave time for another attempt.

  // Held during requests about this session, which are sent one at a time.
  Mutex talking_;
  Timestamp oldest_ ABSL_GUARDED_BY(talking_);
  bool is_written_ ABSL_GUARDED_BY(talking_) = false;  // the key contains `oldest_`
  int64_t revision_ ABSL_GUARDED_BY(talking_) = 0;     // the last known revision of the key

  std::atomic<uint64_t> alive_until_{0};  // a time of Clock::BootMicros

  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<WaitQueue> ended_;
  std::thread thread_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_SESSION_H_
