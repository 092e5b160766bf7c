// Server: a store, an oracle and coordination for many processes; what `percolator serve` runs.
//
//     auto server = Server::Start({.data = "/var/lib/percolator"});
//     ... Cluster::Open((*server)->address()) ...
//
// It speaks Bigtable's API, version 2, too, so that Bigtable's own clients can look at the data (docs/serving.md).
//
// OracleServer: an oracle alone, one of several of which one leads; what `percolator oracle` runs. For data in Bigtable.

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

namespace percolator {

struct ServerOptions {
  // HOST:PORT. Port 0: one that is free.
  std::string listen = "127.0.0.1:7820";
  // Where the data is. Empty: nowhere, it is forgotten at the end.
  std::string data;
  RocksStoreOptions store;
  Duration oracle_window = std::chrono::seconds(3);
  // With a certificate and key it speaks TLS, with `ca` it wants clients to show a certificate that `ca` has signed.
  TlsFiles tls;
  // Speak plain text beyond this machine. Without it, an address that others can reach needs `tls`.
  bool plaintext_for_all = false;
  // Let clients of Bigtable's API write tables that Percolator made. Such a write does not follow the protocol of transactions and
  // can damage them. Reads, and tables that clients of Bigtable made, are always allowed.
  bool bigtable_writes_all = false;
  // A session whose process is not heard of for this long is over.
  Duration session_ttl = std::chrono::seconds(5);
  // How many sessions there may be, and listeners for hints: each process has one of both. What exceeds it is refused with
  // kUnavailable.
  size_t sessions = 10'000;
  // What a request may be at most: enough for the largest mutation of a row, with StoreLimits as they are by default. Less
  // than 2 GiB, as answers.
  size_t request_bytes = size_t{80} << 20;
  // What an answer may be at most.
  size_t answer_bytes = size_t{256} << 20;
  // How many requests to the store are worked on at once, and how many may wait for that. What exceeds it is refused with
  // kUnavailable: it may be tried again.
  int threads = 32;
  size_t waiting_requests = 10'000;
  // How many connections there may be: the smaller of this and half of the files that the process may open (Start raises
  // that limit as far as it may). One more takes the place of the one that was silent for the longest time, if that is a
  // second or more; otherwise it is closed.
  size_t connections = 10'000;
  // Memory for messages that are being received, on all connections together. Beyond it gRPC cancels calls.
  size_t receive_bytes = size_t{256} << 20;
  // Memory for all requests that are worked on or wait; one request may take half of it. Beyond it requests are refused
  // with kUnavailable. At least twice request_bytes.
  size_t requests_memory = size_t{256} << 20;
  // Answers that clients have not taken yet, all together and on one connection. Beyond it answers are refused with
  // kUnavailable, streams wait, and calls of which nothing was taken for two seconds are cancelled.
  size_t unsent_bytes = size_t{256} << 20;
  size_t unsent_bytes_per_connection = size_t{128} << 20;
};

class Server {
 public:
  // Answers when this returns. kInvalidArgument: the options contradict each other. kUnavailable: the address is taken.
  // Errors of the store as they are.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Stops, if Stop was not called.
  ~Server();

  // For Cluster::Open, with the port that was found.
  std::string address() const;
  int port() const;

  // Takes no more requests, finishes those under way (for at most `grace`, then they are cancelled) and closes the store.
  absl::Status Stop(Duration grace = std::chrono::seconds(5));

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct OracleServerOptions {
  // HOST:PORT. Port 0: one that is free.
  std::string listen = "127.0.0.1:7821";
  // The members of an etcd, HOST:PORT each, which decides who leads and keeps the bound of the timestamps.
  std::vector<std::string> etcd;
  TlsFiles etcd_tls;
  // Of the keys in etcd. All oracles of a cluster have the same, those of another cluster another one.
  std::string prefix = "percolator/";
  // What others are told when this one leads. Empty: `listen`.
  std::string name;
  // When the leader is not heard of for a little longer than this, another one leads.
  Duration lease = std::chrono::seconds(2);
  // How far ahead of the clock timestamps are reserved; a new leader begins after that.
  Duration window = std::chrono::seconds(3);
  // As those of ServerOptions.
  TlsFiles tls;
  bool plaintext_for_all = false;
  // Called when another oracle leads than before: its name, and whether it is this one. Empty: nobody leads. It must not wait.
  std::function<void(const std::string& name, bool is_self)> on_leader;
};

class OracleServer {
 public:
  // Answers when this returns, with timestamps once it leads. kInvalidArgument: the options contradict each other.
  // kUnavailable: the address is taken. etcd need not be there yet.
  static absl::StatusOr<std::unique_ptr<OracleServer>> Start(const OracleServerOptions& options);
  // Stops, if Stop was not called.
  ~OracleServer();

  // HOST:PORT, with the port that was found.
  std::string address() const;
  int port() const;

  // Gives up the lead, so that another takes over at once, and takes no more requests. Those under way have a second, then
  // they are cancelled.
  void Stop();

 private:
  class Impl;
  explicit OracleServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_H_
