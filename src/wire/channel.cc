// SPDX-License-Identifier: Apache-2.0

#include "src/wire/channel.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "percolator/file.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr int kFirstReconnectMs = 20;
constexpr int kLastReconnectMs = 1000;
// The timeout of an attempt to connect. gRPC derives it from its minimum backoff, which does not make attempts rarer.
// Distant servers and TLS need a part of a second, and a busy machine needs more.
constexpr int kConnectMs = 5000;
constexpr int kKeepaliveMs = 20'000;
// The maximum size of a file with certificates or a key.
constexpr size_t kMaxPemBytes = 4 << 20;

absl::Status ReadPem(const std::string& path, std::string* content) {
  if (path.empty()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path, kMaxPemBytes));
  *content = std::move(bytes);
  if (content->empty()) {
    return absl::InvalidArgumentError(StrCat("cannot read a certificate or key from ", path, ": the file is empty"));
  }
  if (content->find("-----BEGIN ") == std::string::npos) {
    return absl::InvalidArgumentError(StrCat("cannot read a certificate or key from ", path, ": it is not PEM"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const TlsFiles& tls) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  if (tls.cert.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(StrCat("a client needs both a certificate and its key: only ",
                                             tls.cert.empty() ? "key=" : "cert=", tls.cert.empty() ? tls.key : tls.cert,
                                             " is given"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const PemContents pem, ReadPemFiles(tls));
  return grpc::SslCredentials({pem.ca, pem.key, pem.cert});
}

}  // namespace

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // Only digits and dots, because a host name may begin with "127." too.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string HostAndPort(const std::string& host, int port) {
  const bool colons = host.find(':') != std::string::npos;
  return StrCat(colons ? StrCat("[", host, "]") : host, ":", port);
}

absl::StatusOr<PemContents> ReadPemFiles(const TlsFiles& files) {
  PemContents contents;
  PERCOLATOR_RETURN_IF_ERROR(ReadPem(files.ca, &contents.ca));
  PERCOLATOR_RETURN_IF_ERROR(ReadPem(files.cert, &contents.cert));
  PERCOLATOR_RETURN_IF_ERROR(ReadPem(files.key, &contents.key));
  return contents;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& target, const TlsFiles& tls) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials, Credentials(tls));
  return OpenChannelWith(target, credentials);
}

std::shared_ptr<grpc::Channel> OpenChannelWith(const std::string& target,
                                               const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Clusters of one process do not share connections.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

gpr_timespec DeadlineIn(Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(timeout.count(), GPR_TIMESPAN));
}

void SetTimeout(grpc::ClientContext* context, Duration timeout) { context->set_deadline(DeadlineIn(timeout)); }

absl::Status WithReason(const absl::Status& status, std::string_view request, const grpc::ClientContext& context,
                        std::optional<Duration> timeout) {
  if (!absl::IsDeadlineExceeded(status) || ToPiece(status.message()) != "Deadline Exceeded") return status;
  const std::string peer = context.peer();
  const std::string within =
      timeout.has_value() ? StrCat("within ", timeout->count() / 1000, " ms") : std::string("in time");
  return absl::DeadlineExceededError(StrCat(request.substr(request.rfind('.') + 1), ": no answer from ",
                                            peer.empty() ? "the server, which was not reached," : peer, " ", within,
                                            "; check that the server runs and is not overloaded"));
}

bool WaitForConnection(grpc::Channel& channel, Duration timeout) {
  return channel.WaitForConnected(DeadlineIn(timeout));
}

}  // namespace percolator
