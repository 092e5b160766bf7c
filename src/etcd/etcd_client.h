// A client of etcd, version 3: keys, transactions, leases and watches, as calls that block.
//
// ENDPOINTS  All members of one etcd. One is asked until it can't be reached or does not answer in its share of the time;
//            then the next.
// REPEATING  Every request is repeated until its time is over, though an earlier try may have been carried out. So callers
//            send only what may be carried out twice: reads, leases of a number they chose, and transactions that tell by
//            their comparison that they have been there before.
//
// Errors: kUnavailable and kDeadlineExceeded, and then it is not known whether the request was carried out; else etcd's.

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

// The end of the range of keys that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

// A comparison and what follows if it holds (Then) or does not (Else), built step by step.
class EtcdTxn {
 public:
  // Zero: there is no such key.
  EtcdTxn& IfModRevision(std::string_view key, int64_t revision);
  EtcdTxn& IfExists(std::string_view key);
  EtcdTxn& IfAbsent(std::string_view key) { return IfModRevision(key, 0); }
  EtcdTxn& IfValue(std::string_view key, std::string_view value);
  EtcdTxn& ThenPut(std::string_view key, std::string_view value, int64_t lease = 0);
  EtcdTxn& ThenDelete(std::string_view key);
  EtcdTxn& ElseGet(std::string_view key);

  const etcd::TxnRequest& request() const { return request_; }

 private:
  etcd::Compare* AddCompare(std::string_view key, etcd::Compare::CompareTarget target);

  etcd::TxnRequest request_;
};

class EtcdClient {
 public:
  // kInvalidArgument: no endpoints, or a file of `tls` can't be read. Whether etcd is there shows later.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Open(const std::vector<std::string>& endpoints,
                                                          const TlsFiles& tls);
  ~EtcdClient();

  // As of now: linearizable, like all that follows.
  absl::StatusOr<std::optional<etcd::KeyValue>> Get(std::string_view key, Duration timeout);
  absl::StatusOr<std::vector<etcd::KeyValue>> List(std::string_view prefix, Duration timeout);
  absl::Status Put(std::string_view key, std::string_view value, int64_t lease, Duration timeout);

  struct TxnResult {
    bool succeeded = false;
    int64_t revision = 0;                                  // of etcd; if it succeeded, of all keys that were put
    std::vector<std::optional<etcd::KeyValue>> otherwise;  // what each ElseGet found
  };
  absl::StatusOr<TxnResult> Commit(const EtcdTxn& txn, Duration timeout);

  // Makes etcd forget how all keys, of whomever, were before that revision. That it has already is no error.
  absl::Status Compact(int64_t revision, Duration timeout);

  // Each returns how long the lease lasts, counted from before the call: whole seconds, perhaps more than was asked for.
  // A lease of that number that is there already is renewed.
  absl::StatusOr<Duration> Grant(int64_t lease, Duration ttl, Duration timeout);
  // kNotFound: it is over.
  absl::StatusOr<Duration> KeepAlive(int64_t lease, Duration timeout);
  // Ends a lease and all keys on it. A lease that is over already is no error.
  absl::Status Revoke(int64_t lease, Duration timeout);

 private:
  friend class EtcdWatch;
  struct Endpoint;
  using Attempt = std::function<absl::Status(Endpoint& endpoint, Duration timeout)>;

  explicit EtcdClient(std::vector<std::unique_ptr<Endpoint>> endpoints);
  absl::Status Repeat(Duration timeout, const Attempt& attempt);
  Endpoint& Current(size_t* which);
  // From now on another endpoint is asked, if it was still this one.
  void Leave(size_t which);

  const std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<size_t> current_{0};
};

// Calls `changed`, in a thread of its own, for every key with a prefix that is put from now on, while etcd can be reached. What
// is put while it can't be is missed.
class EtcdWatch {
 public:
  using Changed = std::function<void(const etcd::KeyValue& put)>;

  // The client must outlive this.
  EtcdWatch(EtcdClient* client, std::string prefix, Changed changed);
  // Waits for a call under way.
  ~EtcdWatch();
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

 private:
  void Run();
  // Until the connection breaks. False: there will be no other.
  bool WatchOnce();

  EtcdClient* const client_;
  const std::string prefix_;
  const Changed changed_;

  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // of the stream there is
  const std::unique_ptr<WaitQueue> ended_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace percolator

#endif  // PERCOLATOR_ETCD_ETCD_CLIENT_H_
