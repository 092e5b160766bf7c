// SPDX-License-Identifier: Apache-2.0

// A client of etcd, version 3: keys, transactions, leases and watches, as calls that block.
//
// ENDPOINTS  The members of one etcd. The client uses one of them until it cannot be reached or does not answer in its share
//            of the timeout, then the next.
// RETRIES    The client repeats every request until its timeout, even if an earlier attempt may have been executed. So
//            callers send only requests that may be executed twice: reads, leases whose number they choose, and
//            transactions whose comparison detects that they were executed before.
//
// After Unavailable or DeadlineExceeded it is unknown whether the request was executed. Other errors are etcd's.

#ifndef PERCOLATOR_ETCD_ETCD_CLIENT_H_
#define PERCOLATOR_ETCD_ETCD_CLIENT_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/tls.h"
#include "src/wire/proto/etcd.grpc.pb.h"

namespace percolator {

namespace etcd = ::etcdserverpb;

// Returns the end of the range of keys that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

// Builds a transaction: comparisons, the operations if all of them hold (Then), and those if one does not (Otherwise).
class EtcdTxn {
 public:
  // A revision of zero requires that the key does not exist.
  EtcdTxn& IfModRevision(std::string_view key, int64_t revision);
  EtcdTxn& IfExists(std::string_view key);
  EtcdTxn& IfAbsent(std::string_view key) { return IfModRevision(key, 0); }
  EtcdTxn& IfValue(std::string_view key, std::string_view value);
  EtcdTxn& ThenPut(std::string_view key, std::string_view value, int64_t lease = 0);
  EtcdTxn& ThenDelete(std::string_view key);
  EtcdTxn& OtherwiseGet(std::string_view key);

  const etcd::TxnRequest& request() const { return request_; }

 private:
  etcd::Compare* AddCompare(std::string_view key, etcd::Compare::CompareTarget target);

  etcd::TxnRequest request_;
};

// Thread-safe.
class EtcdClient {
 public:
  // Returns InvalidArgument if `endpoints` is empty or a file of `tls` cannot be read. Does not connect yet.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Open(const std::vector<std::string>& endpoints,
                                                          const TlsFiles& tls);
  ~EtcdClient();

  // All requests are linearizable.
  absl::StatusOr<std::optional<etcd::KeyValue>> Get(std::string_view key, Duration timeout);
  absl::StatusOr<std::vector<etcd::KeyValue>> List(std::string_view prefix, Duration timeout);
  absl::Status Put(std::string_view key, std::string_view value, int64_t lease, Duration timeout);

  struct TxnResult {
    bool succeeded = false;
    int64_t revision = 0;                                  // etcd's revision; after a success that of all keys it put
    std::vector<std::optional<etcd::KeyValue>> otherwise;  // the result of each OtherwiseGet
  };
  absl::StatusOr<TxnResult> Commit(const EtcdTxn& txn, Duration timeout);

  // Makes etcd discard the history of all keys, of all its clients, before `revision`. Succeeds if it was discarded before.
  absl::Status Compact(int64_t revision, Duration timeout);

  // Grant and KeepAlive return how long the lease lasts, counted from before the call: whole seconds, possibly more than
  // requested. Grant renews a lease of that number if one exists.
  absl::StatusOr<Duration> Grant(int64_t lease, Duration ttl, Duration timeout);
  // Returns NotFound if the lease has expired.
  absl::StatusOr<Duration> KeepAlive(int64_t lease, Duration timeout);
  // Ends a lease and deletes all keys on it. Succeeds if the lease has already expired.
  absl::Status Revoke(int64_t lease, Duration timeout);

 private:
  friend class EtcdWatch;
  struct Endpoint;
  using Attempt = std::function<absl::Status(Endpoint& endpoint, Duration timeout)>;

  explicit EtcdClient(std::vector<std::unique_ptr<Endpoint>> endpoints);
  absl::Status Repeat(Duration timeout, const Attempt& attempt);
  Endpoint& Current(size_t* which);
  // Moves on to the next endpoint if endpoint `which` is still the current one.
  void Leave(size_t which);

  const std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<size_t> current_{0};
};

// Calls `changed`, in its own thread, for every later put of a key with the prefix. Misses puts while etcd cannot be reached.
class EtcdWatch {
 public:
  using Changed = std::function<void(const etcd::KeyValue& put)>;

  // REQUIRES: `client` outlives this object.
  EtcdWatch(EtcdClient* client, std::string prefix, Changed changed);
  // Waits for a call in progress.
  ~EtcdWatch();
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

 private:
  void Run();
  // Watches until the connection breaks. Returns false if the watch is ending.
  bool WatchOnce();

  EtcdClient* const client_;
  const std::string prefix_;
  const Changed changed_;

  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // of the open stream
  const std::unique_ptr<WaitQueue> ended_;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace percolator

#endif  // PERCOLATOR_ETCD_ETCD_CLIENT_H_
