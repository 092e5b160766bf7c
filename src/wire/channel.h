// SPDX-License-Identifier: Apache-2.0

// Connections to servers.

#ifndef PERCOLATOR_WIRE_CHANNEL_H_
#define PERCOLATOR_WIRE_CHANNEL_H_

#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/tls.h"
#include "src/wire/status.h"

namespace percolator {

// The contents of the files. A file without a name has empty contents.
struct PemContents {
  std::string ca;
  std::string cert;
  std::string key;
};
// Returns InvalidArgument if a file cannot be read or is not PEM.
absl::StatusOr<PemContents> ReadPemFiles(const TlsFiles& files);

// Returns true if requests to this host stay on this machine. `host` has no port and no brackets.
bool IsLoopback(std::string_view host);
// Returns HOST:PORT, with brackets around an IPv6 address.
std::string HostAndPort(const std::string& host, int port);

// Returns a channel that connects on first use, and again soon after the connection breaks. It uses plain text if `tls` is
// empty. It does not limit the size of messages; the server does. Returns InvalidArgument if a file of `tls` cannot be read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& target, const TlsFiles& tls);
// The same with the given credentials.
std::shared_ptr<grpc::Channel> OpenChannelWith(const std::string& target,
                                               const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Returns a gRPC deadline `timeout` from now, by a clock that cannot be set.
gpr_timespec DeadlineIn(Duration timeout);
void SetTimeout(grpc::ClientContext* context, Duration timeout);

// Waits until the channel is connected, or until `timeout`. Callers must wait with this function before they retry, instead
// of sleeping: gRPC connects only while a thread waits for it, and a call that fails at once does not wait.
bool WaitForConnection(grpc::Channel& channel, Duration timeout);

// Returns the status. If it is the bare "Deadline Exceeded" of gRPC, replaces its text by the type of the request (such as
// percolator.v1.ReadRequest), the server and the timeout.
absl::Status WithReason(const absl::Status& status, std::string_view request, const grpc::ClientContext& context,
                        std::optional<Duration> timeout = std::nullopt);

// Sends a request and waits for the answer. `method` is a method of the generated stub:
//
//     Call(*stub, &v1::Oracle::Stub::GetTimestamps, timeout, request, &response)
//
// Returns Unavailable at once if the server cannot be reached.
template <typename Stub, typename Request, typename Response>
absl::Status Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  Duration timeout, const Request& request, Response* response) {
  grpc::ClientContext context;
  SetTimeout(&context, timeout);
  return WithReason(FromGrpc((stub.*method)(&context, request, response)), request.GetTypeName(), context, timeout);
}

}  // namespace percolator

#endif  // PERCOLATOR_WIRE_CHANNEL_H_
