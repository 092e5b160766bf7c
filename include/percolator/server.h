// SPDX-License-Identifier: Apache-2.0

// Server: a store, an oracle and coordination for many processes. `percolator serve` runs one.
//
//     PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<Server> server,
//                                 Server::Start({.data = "/var/lib/percolator"}));
//     ... Cluster::Open(server->address()) ...
//
// A server also implements Bigtable's API v2, so that Bigtable's own clients can read the data
// (docs/serving.md).
//
// OracleServer: one of several oracles, of which one leads, for clusters with data in Bigtable.
// `percolator oracle` runs one.

#ifndef PERCOLATOR_SERVER_H_
#define PERCOLATOR_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/tls.h"

namespace percolator {

struct ServerOptions {
  // HOST:PORT. Port 0: any free port.
  std::string listen = "127.0.0.1:7820";
  // The directory of the data. Empty: the data is in memory and lost at the end.
  std::string data = {};
  RocksOptions store = {};
  Duration oracle_window = std::chrono::seconds(3);
  // With a certificate and key, the server speaks TLS. With `ca`, it also requires clients to
  // present a certificate that `ca` signed.
  TlsFiles tls = {};
  // Allow plain text on an address that other machines can reach. Otherwise such an address
  // requires `tls`.
  bool allow_plaintext = false;
  // Let Bigtable clients write tables that Percolator created. Such a write does not follow the
  // transaction protocol and can damage the table. Bigtable clients can always read, and write
  // tables that Bigtable clients created.
  bool bigtable_writes_all = false;
  // A session ends when its process has not been heard of for this long.
  Duration session_ttl = std::chrono::seconds(5);
  // Maximum number of sessions, and of listeners for hints. Each open cluster has a session, and a
  // listener once it has started a worker. Further ones fail with Unavailable.
  size_t max_sessions = 10'000;
  // Maximum size of a request. The default is enough for the largest RowMutation that the default
  // StoreLimits allow. Less than 2 GiB, like max_response_bytes.
  size_t max_request_bytes = size_t{80} << 20;
  // Maximum size of a response.
  size_t max_response_bytes = size_t{256} << 20;
  // Threads that run requests to the store.
  int threads = 32;
  // Maximum number of requests that wait for a thread. Further ones fail with Unavailable and may
  // be retried.
  size_t max_waiting_requests = 10'000;
  // Maximum number of connections. The limit is lower if the process may open fewer than twice as
  // many files; Start raises that limit as far as the system allows. Above the limit, a new
  // connection replaces the one that was silent the longest, if that was silent for at least a
  // second; otherwise the new one is closed.
  size_t max_connections = 10'000;
  // Maximum memory for messages being received, on all connections. Above it, gRPC cancels calls.
  size_t max_receive_bytes = size_t{256} << 20;
  // Maximum memory for requests that run or wait. One request may use half of it. Above it,
  // requests fail with Unavailable. At least twice max_request_bytes.
  size_t max_requests_memory = size_t{256} << 20;
  // Maximum size of responses that clients have not received yet, on all connections and on one
  // connection. Above it, responses fail with Unavailable, streams wait, and calls whose client has
  // received nothing for two seconds are cancelled.
  size_t max_unsent_bytes = size_t{256} << 20;
  size_t max_unsent_bytes_per_connection = size_t{128} << 20;
};

// Thread-safe. In a child of fork() Stop fails with FailedPrecondition, and destroying the server
// there does nothing.
class Server {
 public:
  // Returns a server that accepts requests. Returns InvalidArgument if the options contradict each
  // other, Unavailable if the address is in use, and the store's error if it cannot be opened.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Stops, if Stop was not called.
  ~Server();

  // Returns the address for Cluster::Open, with the actual port.
  std::string address() const;
  int port() const;

  // Accepts no more requests, waits up to `grace` for running ones, cancels the rest, and closes
  // the store. Further calls wait for the first one and return the same status.
  absl::Status Stop(Duration grace = std::chrono::seconds(5));

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct OracleServerOptions {
  // HOST:PORT. Port 0: any free port.
  std::string listen = "127.0.0.1:7821";
  // The members of the etcd that elects the leader and stores the bound of the timestamps, each
  // HOST:PORT.
  std::vector<std::string> etcd = {};
  TlsFiles etcd_tls = {};
  // Prefix of the keys in etcd. The same for all oracles of a cluster, and different for each
  // cluster.
  std::string prefix = "percolator/";
  // The name under which other oracles know this one when it leads. Empty: `listen`.
  std::string name = {};
  // If the leader has not been heard of for slightly more than this, another oracle leads.
  Duration lease = std::chrono::seconds(2);
  // How far ahead of the clock the leader reserves timestamps. The next leader starts after them.
  Duration window = std::chrono::seconds(3);
  // As in ServerOptions.
  TlsFiles tls = {};
  bool allow_plaintext = false;
  // Called when the leader changes: with its name, which is empty if there is none, and whether it
  // is this oracle. Must not wait.
  std::function<void(const std::string& name, bool is_self)> on_leader = nullptr;
};

// Thread-safe. In a child of fork() Stop and the destructor do nothing.
class OracleServer {
 public:
  // Returns an oracle that accepts requests. It answers with timestamps once it leads. etcd need
  // not run yet. Returns InvalidArgument if the options contradict each other, and Unavailable if
  // the address is in use.
  static absl::StatusOr<std::unique_ptr<OracleServer>> Start(const OracleServerOptions& options);
  // Stops, if Stop was not called.
  ~OracleServer();

  // Returns HOST:PORT with the actual port.
  std::string address() const;
  int port() const;

  // Resigns, so that another oracle can lead at once. Accepts no more requests, waits up to a
  // second for running ones, and cancels the rest. Further calls wait for the first one.
  void Stop();

 private:
  class Impl;
  explicit OracleServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_H_
