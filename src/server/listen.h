// What servers of ours have in common: where they listen, with what certificates, and within what limits.

#ifndef PERCOLATOR_SERVER_LISTEN_H_
#define PERCOLATOR_SERVER_LISTEN_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/tls.h"
#include "src/server/acceptor.h"
#include "src/server/unsent.h"

namespace percolator {

struct ListenOptions {
  std::string address;  // HOST:PORT; port 0: one that is free
  TlsFiles tls;
  bool allow_plaintext = false;
  size_t max_request_bytes = size_t{80} << 20;
  size_t max_response_bytes = size_t{256} << 20;
  size_t max_connections = 10'000;
  size_t max_receive_bytes = size_t{256} << 20;
  UnsentAnswers* unsent = nullptr;  // whose stalled calls are cancelled; null: none. Must outlive the server
};

struct Listening {
  // Accepts no more, and ends the server: requests under way have so long, then they are cancelled.
  void Stop(Duration grace);

  std::unique_ptr<grpc::Server> server;
  std::string host;
  int port = 0;
  std::unique_ptr<Acceptor> acceptor;
};

// Starts a server of these services, which must outlive it. kInvalidArgument: an address that is none, files that can't be
// read, or plain text where others can hear it, unless that is wanted. kUnavailable: the address is taken.
absl::StatusOr<Listening> Listen(const ListenOptions& options, const std::vector<grpc::Service*>& services);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_LISTEN_H_
