// SPDX-License-Identifier: Apache-2.0

// Starts a gRPC server with Percolator's address, certificates and limits.

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
  std::string address;  // HOST:PORT. Port 0 selects a free port.
  TlsFiles tls;
  bool allow_plaintext = false;
  size_t max_request_bytes = size_t{80} << 20;
  size_t max_response_bytes = size_t{256} << 20;
  size_t max_connections = 10'000;
  size_t max_receive_bytes = size_t{256} << 20;
  UnsentAnswers* unsent = nullptr;  // Stalled calls of it are cancelled. May be null; outlives the server.
};

struct Listening {
  // Stops accepting, and ends the server. Requests in progress are cancelled after `grace`.
  void Stop(Duration grace);

  std::unique_ptr<grpc::Server> server;
  std::string host;
  int port = 0;
  std::unique_ptr<Acceptor> acceptor;
};

// Starts a server of these services. Returns InvalidArgument if the address is invalid, a file cannot be read, or other machines
// can reach the address in plain text without `allow_plaintext`. Returns Unavailable if the address is in use, or the
// certificate and the key do not match. REQUIRES: `services` outlive the server.
absl::StatusOr<Listening> Listen(const ListenOptions& options, const std::vector<grpc::Service*>& services);

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_LISTEN_H_
