// SPDX-License-Identifier: Apache-2.0

#include "src/server/listen.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/host_port.h"
#include "src/base/strings.h"
#include "src/server/grpc_settings.h"
#include "src/server/requests.h"
#include "src/wire/channel.h"

namespace percolator {
namespace {

// The limit of concurrent calls per connection. Further calls wait in the client. A call takes about 9 KiB before its request
// has arrived.
constexpr int kStreamsPerConnection = 100;
// The limit of the headers of a call, with 32 bytes for each. They arrive before the request and are not counted with it.
constexpr int kHeaderBytes = 2 << 10;
// A connection to a client that vanished is closed after the sum of these.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMinPingMs = 5'000;
// A connection without a handshake of HTTP/2 or TLS is closed after this time.
constexpr int kHandshakeMs = 10'000;
// A connection without a call for this long is closed. Clients open another when they need it.
constexpr int kIdleMs = 10 * 60'000;

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const TlsFiles& tls) {
  if (tls.empty()) return grpc::InsecureServerCredentials();
  if (tls.cert.empty() || tls.key.empty()) {
    return absl::InvalidArgumentError("a server with TLS needs both a certificate and its key");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const PemContents pem, ReadPemFiles(tls));
  grpc::SslServerCredentialsOptions options(tls.ca.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem.ca;
  options.pem_key_cert_pairs.push_back({pem.key, pem.cert});
  return grpc::SslServerCredentials(options);
}

// Returns true if gRPC can use the credentials. gRPC reports that only for a port on which it listens itself.
bool AreUsable(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
  return server != nullptr && port != 0;
}

void SetLimits(const ListenOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(options.max_request_bytes));
  builder->SetMaxSendMessageSize(static_cast<int>(options.max_response_bytes));
  builder->SetResourceQuota(grpc::ResourceQuota("percolator").Resize(options.max_receive_bytes));
  // gRPC decompresses messages before it applies limits, and a small message can become very large.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kHeaderBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

void Listening::Stop(Duration grace) {
  acceptor->Stop();
  server->Shutdown(DeadlineIn(grace));
  server->Wait();
  server.reset();
}

absl::StatusOr<Listening> Listen(const ListenOptions& options, const std::vector<grpc::Service*>& services) {
  Listening listening;
  const std::optional<HostPort> split = ParseHostPort(options.address);
  if (!split.has_value()) {
    return absl::InvalidArgumentError(
        StrCat("cannot listen on \"", options.address, "\": expected HOST:PORT with a port from 0 to 65535"));
  }
  listening.host = split->host;
  if (options.tls.empty() && !IsLoopback(listening.host) && !options.allow_plaintext) {
    return absl::InvalidArgumentError(
        StrCat("cannot listen on ", options.address,
               " in plain text, because other machines can reach it: give a certificate and a key, or allow it with "
               "allow_plaintext or --plaintext"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials, Credentials(options.tls));
  if (!options.tls.empty() && !AreUsable(credentials)) {
    return absl::UnavailableError(
        StrCat("cannot listen on ", options.address, ": the certificate and key do not match"));
  }
  // The other half is for the files of the store and the rest of the process.
  const size_t connections = std::min(options.max_connections, RaiseFileLimit() / 2);
  absl::StatusOr<std::unique_ptr<Acceptor>> acceptor =
      Acceptor::Bind(split->host, std::to_string(split->port), std::max<size_t>(1, connections));
  if (!acceptor.ok()) {
    return absl::Status(acceptor.status().code(),
                        StrCat("cannot listen on ", options.address, ": ", acceptor.status().message()));
  }
  listening.acceptor = *std::move(acceptor);
  listening.port = listening.acceptor->port();
  if (!HasSmallGrpcDefaults()) {
    gpr_log(GPR_ERROR,
            "gRPC's defaults are not those of Debian 12: clients that never acknowledge the server's settings "
            "can take much memory");
  }
  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  using ConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  std::unique_ptr<Acceptor::Grpc> grpc =
      builder.experimental().AddExternalConnectionAcceptor(ConnectionType::FROM_FD, credentials);
  for (grpc::Service* service : services) builder.RegisterService(service);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("cannot listen on ", options.address, ": the certificate and key do not match"));
  }
  listening.acceptor->Start(std::move(grpc), [unsent = options.unsent] {
    if (unsent != nullptr) unsent->CancelStalled();
    TrimMemory();
  });
  return listening;
}

}  // namespace percolator
