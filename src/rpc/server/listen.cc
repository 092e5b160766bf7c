#include "src/rpc/server/listen.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include "absl/strings/numbers.h"
#include "src/base/strings.h"
#include "src/rpc/channel.h"

namespace percolator {
namespace {

// Requests at once on one connection: what exceeds it waits at the client.
constexpr int kStreamsPerConnection = 1000;
// A connection whose other end is gone without a word is noticed after these.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kShortestPingMs = 5'000;
// For messages that are being received, of all connections together: beyond it reading slows down.
constexpr size_t kMemoryForMessages = size_t{2} << 30;

absl::StatusOr<std::string> HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(StrCat("can't listen on \"", address, "\": it is HOST:PORT"));
  }
  int port = -1;
  const bool is_number = address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!is_number || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        StrCat("can't listen on \"", address, "\": it is HOST:PORT, and a port is a number from 0 to 65535"));
  }
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const TlsFiles& tls) {
  if (tls.empty()) return grpc::InsecureServerCredentials();
  if (tls.cert.empty() || tls.key.empty()) {
    return absl::InvalidArgumentError("a server that speaks TLS needs a certificate and its key");
  }
  const absl::StatusOr<PemContents> pem = ReadPemFiles(tls);
  if (!pem.ok()) return pem.status();
  grpc::SslServerCredentialsOptions options(tls.ca.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem->ca;
  options.pem_key_cert_pairs.push_back({pem->key, pem->cert});
  return grpc::SslServerCredentials(options);
}

void SetLimits(const ListenOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(options.request_bytes));
  builder->SetMaxSendMessageSize(static_cast<int>(options.answer_bytes));
  builder->SetResourceQuota(grpc::ResourceQuota("percolator").Resize(kMemoryForMessages));
  // Two servers on one port would each get some of the requests.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kShortestPingMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

absl::StatusOr<Listening> Listen(const ListenOptions& options, const std::vector<grpc::Service*>& services) {
  Listening listening;
  const absl::StatusOr<std::string> host = HostOf(options.address);
  if (!host.ok()) return host.status();
  listening.host = *host;
  if (options.tls.empty() && !IsLoopback(*host) && !options.plaintext_for_all) {
    return absl::InvalidArgumentError(StrCat(
        "others can reach ", options.address,
        ", and what is sent there would be plain text: give a certificate and a key, or say that this is wanted, with "
        "plaintext_for_all or --plaintext"));
  }
  const absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials = Credentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  builder.AddListeningPort(options.address, *credentials, &listening.port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr || listening.port == 0) {
    return absl::UnavailableError(
        StrCat("can't listen on ", options.address,
               ": the address is taken or not this machine's, or the certificate and key do not fit"));
  }
  return listening;
}

}  // namespace percolator
